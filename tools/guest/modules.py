"""Kernel modules in the order they must be loaded, read from the modules themselves (no depmod needed)."""

from __future__ import annotations

import gzip
import lzma
import re
from collections.abc import Iterable
from pathlib import Path


def read(path: Path) -> bytes:
    """A module's ELF bytes; Debian 13 ships them xz-compressed."""
    data = path.read_bytes()
    if path.suffix == ".xz":
        return lzma.decompress(data)
    if path.suffix == ".gz":
        return gzip.decompress(data)
    return data


def name_of(path: Path) -> str:
    """The kernel's name of a module file: ``virtio-pci.ko.xz`` gives ``virtio_pci``."""
    return path.name.partition(".ko")[0].replace("-", "_")


def depends(elf: bytes) -> list[str]:
    """Names of the modules that this one's ``.modinfo`` section says it needs."""
    found = re.search(rb"(?:^|\0)depends=([^\0]*)\0", elf)
    return [name.replace("-", "_") for name in found[1].decode().split(",") if name] if found else []


def load_order(directory: Path, wanted: Iterable[str]) -> list[tuple[str, bytes]]:
    """Name and ELF bytes of the wanted modules and of all that they need, each after its needs.

    A name with no file below ``directory`` is left out: it is built into the kernel, or not configured.
    """
    files = {name_of(p): p for p in sorted(directory.rglob("*.ko*")) if p.suffix in (".ko", ".xz", ".gz")}
    ordered: dict[str, bytes] = {}

    def visit(name: str, above: frozenset[str]) -> None:
        if name in ordered or name in above or name not in files:
            return
        elf = read(files[name])
        for need in depends(elf):
            visit(need, above | {name})
        ordered[name] = elf

    for name in wanted:
        visit(name.replace("-", "_"), frozenset())
    return list(ordered.items())
