"""The guest's only file system: busybox, some modules, the guest agent, and the scripts in ``files/``."""

from __future__ import annotations

import gzip
import re
import subprocess
from collections.abc import Mapping
from pathlib import Path

from tools.guest import modules
from tools.guest.cpio import Archive
from tools.guest.errors import GuestError

FILES = Path(__file__).parent / "files"

MODULES = (
    # what any machine type gives, then disks, CDs and shares, network, channels, and the rest
    *("virtio_pci", "virtio_mmio", "button", "evdev", "virtio_blk", "virtio_scsi", "sd_mod", "sr_mod"),
    *(
        "ahci",
        "ata_piix",
        "isofs",
        "virtiofs",
        "virtio_net",
        "e1000",
        "e1000e",
        "virtio_console",
        "virtio_rng",
    ),
    *("virtio_balloon", "virtio_mem", "pvpanic_pci", "i6300esb"),
)
"""Modules the guest loads, in this order; a kernel that lacks one does without."""

SCRIPTS = {
    "init": "init",
    "etc/acpi/PWRF/00000080": "power-button",
    "sbin/shutdown": "shutdown",
    "etc/udhcpc.sh": "udhcpc",
    "etc/profile": "profile",
}
"""Where each script of ``files/`` goes."""


def compose(kernel: Path, busybox: Path, agent: Mapping[str, bytes]) -> bytes:
    """The initrd, gzip-compressed.

    Args:
        kernel: an unpacked linux-image package.
        busybox: an unpacked busybox-static package.
        agent: extra files by their path in the guest, executable (the guest agent and its libraries).
    """
    archive = Archive()
    for name in ("proc", "sys", "dev", "run", "tmp", "mnt", "root", "var/log", "usr/bin", "usr/sbin"):
        archive.directory(name)
    archive.device("dev/console", 5, 1)
    archive.file("etc/passwd", b"root::0:0:root:/root:/bin/sh\n")
    archive.file("etc/group", b"root:x:0:\n")
    for path, script in SCRIPTS.items():
        archive.file(path, (FILES / script).read_bytes(), 0o755)
    archive.file("bin/busybox", _one(busybox, "**/bin/busybox").read_bytes(), 0o755)
    loaded = modules.load_order(_one(kernel, "**/lib/modules"), MODULES)
    for name, elf in loaded:
        archive.file(f"modules/{name}.ko", elf)
    archive.file("modules/order", "".join(f"{name}\n" for name, _ in loaded).encode())
    for path, data in sorted(agent.items()):
        archive.file(path, data, 0o755)
    return gzip.compress(archive.to_bytes(), 9, mtime=0)


def agent_files(roots: list[Path]) -> dict[str, bytes]:
    """qemu-ga, its loader and the libraries it is linked with, out of unpacked packages.

    The loader of those packages is asked which libraries it would map, so that none of this machine's gets
    in.
    """
    program = _first(roots, "usr/sbin/qemu-ga")
    loader = _first(roots, "**/ld-linux-x86-64.so.2")
    # Not every directory is a library path of its own; those that hold shared objects are enough.
    paths = sorted({str(p.parent) for root in roots for p in root.rglob("*.so*") if p.is_file()})
    listed = subprocess.run(
        [str(loader), "--library-path", ":".join(paths), "--list", str(program)],
        capture_output=True,
        text=True,
        check=False,
    )
    if listed.returncode or "not found" in listed.stdout:
        raise GuestError(
            f"the guest agent's libraries were not all found: {(listed.stderr or listed.stdout).strip()}"
        )
    files = {"usr/sbin/qemu-ga": program.read_bytes(), "lib64/ld-linux-x86-64.so.2": loader.read_bytes()}
    for soname, path in re.findall(r"^\s*(\S+) => (\S+) ", listed.stdout, re.MULTILINE):
        files[f"lib/x86_64-linux-gnu/{Path(soname).name}"] = Path(path).read_bytes()
    return files


def kernel_image(kernel: Path) -> bytes:
    """The bootable kernel (a bzImage) of an unpacked linux-image package."""
    return _one(kernel, "boot/vmlinuz-*").read_bytes()


def _first(roots: list[Path], pattern: str) -> Path:
    for root in roots:
        for path in sorted(root.glob(pattern)):
            if path.is_file():
                return path
    raise GuestError(f"no unpacked package holds {pattern}")


def _one(root: Path, pattern: str) -> Path:
    found = sorted(root.glob(pattern))
    if not found:
        raise GuestError(f"{root.name} holds no {pattern}: was the package laid out anew?")
    return found[0]
