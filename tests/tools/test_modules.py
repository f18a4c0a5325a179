"""Kernel modules are loaded after those they need."""

from __future__ import annotations

import lzma
from pathlib import Path

from tools.guest import modules


def make(directory: Path, name: str, depends: str, suffix: str = ".ko") -> None:
    elf = b"\x7fELF\0license=GPL\0depends=" + depends.encode() + b"\0name=x\0"
    (directory / f"{name}{suffix}").write_bytes(lzma.compress(elf) if suffix.endswith(".xz") else elf)


def test_needs_come_first_and_once(tmp_path: Path) -> None:
    make(tmp_path, "virtio", "")
    make(tmp_path, "virtio_ring", "virtio")
    make(tmp_path, "virtio-pci", "virtio,virtio_ring", ".ko.xz")
    make(tmp_path, "virtio_blk", "virtio_ring,virtio")
    order = [name for name, _ in modules.load_order(tmp_path, ["virtio-pci", "virtio_blk"])]
    assert order == ["virtio", "virtio_ring", "virtio_pci", "virtio_blk"]


def test_compressed_modules_are_unpacked(tmp_path: Path) -> None:
    make(tmp_path, "button", "", ".ko.xz")
    ((_, elf),) = modules.load_order(tmp_path, ["button"])
    assert elf.startswith(b"\x7fELF")


def test_what_the_kernel_lacks_is_left_out(tmp_path: Path) -> None:
    make(tmp_path, "isofs", "cdrom")
    assert [name for name, _ in modules.load_order(tmp_path, ["ahci", "isofs"])] == ["isofs"]


def test_a_circle_of_needs_ends(tmp_path: Path) -> None:
    make(tmp_path, "a", "b")
    make(tmp_path, "b", "a")
    assert sorted(name for name, _ in modules.load_order(tmp_path, ["a"])) == ["a", "b"]
