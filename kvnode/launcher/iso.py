"""ISO images of files that a guest reads: made whole under another name, then renamed."""

from __future__ import annotations

import os
from pathlib import Path

from kvnode.launcher.errors import LauncherError
from kvnode.launcher.image import run_tool
from kvnode.launcher.ownership import give_to_qemu

#: The size of an image is a multiple of this: QEMU refuses one that is not on storage with sectors of 4 KiB.
ALIGNMENT = 4096

_FORMAT = ("-joliet", "-rock")
_LAYOUT = ("-partition_cyl_align", "on")
# Secrets are in there: for QEMU's user and this process's alone.
_MODE = 0o640


def write_tree(iso: Path, label: str, directory: Path, reason: str) -> None:
    """Write what is in ``directory`` (``pkg/cloud-init/cloud-init.go:406``); raises LauncherError."""
    _write(iso, ["-volid", label, *_FORMAT, *_LAYOUT, str(directory)], reason)


def write_files(iso: Path, label: str, files: dict[str, Path], reason: str) -> None:
    """Write files by their names on the image, following links (``pkg/config/config.go:117``).

    Raises LauncherError.
    """
    grafts = [f"{name}={path}" for name, path in files.items()]
    _write(iso, ["-follow-links", "-volid", label, *_FORMAT, "-graft-points", *_LAYOUT, *grafts], reason)


def write_empty(iso: Path, size: int, reason: str) -> None:
    """Write ``size`` bytes of zeros, which a migration fills; raises LauncherError."""
    staging = _staging(iso, reason)
    try:
        # Written and not left sparse: the space is to be there when the content comes.
        with staging.open("xb") as file:
            os.posix_fallocate(file.fileno(), 0, size)
    except OSError as error:
        raise LauncherError(reason, f"{iso.name} cannot be written: {error.strerror}") from None
    _finish(staging, iso, reason)


def _write(iso: Path, arguments: list[str], reason: str) -> None:
    staging = _staging(iso, reason)
    try:
        run_tool(["xorrisofs", "-output", str(staging), *arguments], reason)
        size = staging.stat().st_size
        os.truncate(staging, -(-size // ALIGNMENT) * ALIGNMENT)
    except OSError as error:
        staging.unlink(missing_ok=True)
        raise LauncherError(reason, f"{iso.name} cannot be written: {error.strerror}") from None
    except LauncherError:
        staging.unlink(missing_ok=True)
        raise
    _finish(staging, iso, reason)


def _staging(iso: Path, reason: str) -> Path:
    staging = iso.with_name(iso.name + ".staging")
    try:
        iso.parent.mkdir(parents=True, exist_ok=True)
        staging.unlink(missing_ok=True)
    except OSError as error:
        raise LauncherError(reason, f"{iso.name} cannot be written: {error.strerror}") from None
    return staging


def _finish(staging: Path, iso: Path, reason: str) -> None:
    try:
        staging.chmod(_MODE)
        give_to_qemu(staging)
        staging.replace(iso)
    except OSError as error:
        staging.unlink(missing_ok=True)
        raise LauncherError(reason, f"{iso.name} cannot be put in place: {error.strerror}") from None
