"""Reads ISO images with a tool that is not the one under test's way of writing them."""

from __future__ import annotations

import subprocess
from pathlib import Path


def label(iso: Path) -> str:
    """The volume label, where ISO 9660 has it."""
    return iso.read_bytes()[32808 : 32808 + 32].decode().strip()


def contents(iso: Path, scratch: Path) -> dict[str, bytes]:
    """Path to content of every file."""
    target = scratch / f"{iso.name}-contents"
    command = ["xorriso", "-osirrox", "on", "-indev", str(iso), "-extract", "/", str(target)]
    subprocess.run(command, capture_output=True, check=True)
    return {str(file.relative_to(target)): file.read_bytes() for file in target.rglob("*") if file.is_file()}
