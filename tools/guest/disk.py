"""A disk image that boots by BIOS and by UEFI: GRUB in front of one FAT partition with the kernel and initrd.

No loop device or root is needed: GRUB's core image is laid into the gap before the partition by hand, as
grub-bios-setup would, and mtools writes the file system. The on-disk layout of GRUB's boot sector is in the
GRUB manual, "Images"; that of the partition table is the classic MBR's.
"""

from __future__ import annotations

import os
import struct
import subprocess
from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

from tools.guest.errors import GuestError

SECTOR = 512
MIB = 1 << 20
PARTITION_START = MIB
"""Where the partition begins, bytes: the gap before it holds GRUB's core image."""

GRUB_LIB = Path("/usr/lib/grub")
GRUB_MODULES = ("part_msdos", "fat", "linux", "normal", "search", "search_fs_file", "boot")
COMMAND_LINE = "console=ttyS0 quiet panic=-1"
"""The kernel's command line on the disk; switches come by cloud-init user data there."""

GRUB_CONFIG = f"""\
search --no-floppy --file /vmlinuz --set=root
linux /vmlinuz {COMMAND_LINE}
initrd /initrd.gz
boot
"""

FAT_SERIAL = "4b564e44"
FIXED_TIME = "1700000000"
"""The time, seconds since 1970, that every file on the image bears."""


def write_raw(target: Path, kernel: Path, initrd: Path) -> None:
    """Write the raw image, sparse, as large as it needs to be.

    Raises:
        GuestError: GRUB's or mtools' files are not installed, or a tool failed.
    """
    content = kernel.stat().st_size + initrd.stat().st_size
    size = _round_up(content + 2 * MIB, MIB) + PARTITION_START
    with TemporaryDirectory(dir=target.parent) as scratch:
        work = Path(scratch)
        core, efi = _grub_images(work)
        image = work / "image"
        with image.open("wb") as file:
            file.truncate(size)
            file.write(_boot_sector(core, size))
            file.write(core)
        _fill_partition(image, size, {"/vmlinuz": kernel, "/initrd.gz": initrd, "/EFI/BOOT/BOOTX64.EFI": efi})
        image.replace(target)


def write_qcow2(target: Path, raw: Path) -> None:
    """Write the image once more as compressed qcow2, the form that container disks use."""
    # One coroutine: with more, the order of the clusters would change from run to run.
    _tool(["qemu-img", "convert", "-q", "-m", "1", "-c", "-f", "raw", "-O", "qcow2", str(raw), str(target)])


def _grub_images(work: Path) -> tuple[bytes, Path]:
    config = work / "early.cfg"
    config.write_text(GRUB_CONFIG)
    core, efi = work / "core.img", work / "BOOTX64.EFI"
    for platform, output, modules in (
        ("i386-pc", core, ("biosdisk", *GRUB_MODULES)),
        ("x86_64-efi", efi, GRUB_MODULES),
    ):
        library = GRUB_LIB / platform
        if not library.is_dir():
            raise GuestError(
                f"{library} is missing: install grub-pc-bin and grub-efi-amd64-bin (`make setup` does)"
            )
        options = ["-d", str(library), "-O", platform, "-p", "/grub", "-c", str(config), "-o", str(output)]
        _tool(["grub-mkimage", *options, *modules])
    data = core.read_bytes()
    if len(data) > PARTITION_START - SECTOR:
        raise GuestError(f"GRUB's core image of {len(data)} bytes does not fit before the partition")
    return data, efi


def _boot_sector(core: bytes, size: int) -> bytes:
    """GRUB's boot sector with a partition table of one bootable FAT partition.

    boot.img loads the core image from sector 1 unless told otherwise, and core.img carries its own block
    list.
    """
    sector = bytearray((GRUB_LIB / "i386-pc" / "boot.img").read_bytes())
    if len(sector) != SECTOR or len(core) < SECTOR:
        raise GuestError("GRUB's boot.img is not one sector, or its core image is empty")
    sector[0x66:0x68] = (
        b"\x90\x90"  # a jump that older BIOSes need; without it the drive number is taken as given
    )
    chs = b"\xfe\xff\xff"
    start, length = PARTITION_START // SECTOR, (size - PARTITION_START) // SECTOR
    sector[440:446] = bytes.fromhex(FAT_SERIAL) + b"\0\0"
    sector[446:462] = struct.pack("<B3sB3sII", 0x80, chs, 0xEF, chs, start, length)
    sector[462:510] = bytes(48)
    sector[510:512] = b"\x55\xaa"
    return bytes(sector)


def _fill_partition(image: Path, size: int, files: dict[str, Path]) -> None:
    partition = ["-i", f"{image}@@{PARTITION_START}"]
    sectors = (size - PARTITION_START) // SECTOR
    geometry = ["-h", "16", "-s", "63", "-T", str(sectors), "-H", str(PARTITION_START // SECTOR)]
    _tool(["mformat", *partition, *geometry, "-N", FAT_SERIAL, "-v", "KVNODE", "::"])
    _tool(["mmd", *partition, "::/EFI", "::/EFI/BOOT"])
    for name, source in files.items():
        _tool(["mcopy", *partition, str(source), f"::{name}"])


def _tool(argv: Sequence[str]) -> None:
    env = {
        **os.environ,
        "SOURCE_DATE_EPOCH": FIXED_TIME,
        "TZ": "UTC",
        "MTOOLS_SKIP_CHECK": "1",
        "LC_ALL": "C",
    }
    try:
        done = subprocess.run(argv, capture_output=True, text=True, check=False, env=env)
    except FileNotFoundError:
        raise GuestError(f"{argv[0]} is not installed: `make setup` installs it") from None
    if done.returncode:
        lines = (done.stderr or done.stdout).strip().splitlines() or ["no message"]
        raise GuestError(f"{argv[0]} failed with status {done.returncode}: {lines[-1]}")


def _round_up(number: int, step: int) -> int:
    return -(-number // step) * step
