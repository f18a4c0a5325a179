"""Disks whose block sizes are to be those of their volume (``blockSize.matchVolume``): the volume is asked here, where
it is (``pkg/virt-launcher/virtwrap/converter/converter.go:284``). The conversion is given a VMI without that wish.
"""

from __future__ import annotations

import copy
import os
import stat
import sys
import xml.etree.ElementTree as ET
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any

from kvnode.launcher.disk_modes import data_path
from kvnode.launcher.manager.errors import ManagerError
from kvnode.launcher.manager.instance import Instance
from kvnode.launcher.manager.xml import name_of

# <linux/fs.h>
_BLKSSZGET, _BLKPBSZGET = 0x1268, 0x127B
_DEVICES = Path("/sys/dev/block")


def matched(vmi: Instance) -> tuple[str, ...]:
    """The names of the disks that are to match their volume; sizes that are given count more."""
    return tuple(disk["name"] for disk in vmi.devices.get("disks") or () if _matches(disk))


def without_wish(vmi: Instance) -> Mapping[str, Any]:
    """The VMI's data without the wish."""
    made = copy.deepcopy(dict(vmi.data))
    for disk in made["spec"]["domain"]["devices"]["disks"]:
        if _matches(disk):
            del disk["blockSize"]["matchVolume"]
    return made


def fill_in(domain: ET.Element, names: Collection[str]) -> None:
    """Give the disks of those names the block sizes of their volumes; raises ManagerError."""
    for disk in domain.iterfind("devices/disk"):
        name = name_of(disk)
        if name not in names:
            continue
        path = data_path(disk)
        if not path:
            raise ManagerError(f"volume {name}: blockSize.matchVolume needs a file or a block device")
        try:
            logical, physical, discard = sizes_of(path)
        except OSError as error:
            raise ManagerError(
                f"volume {name}: blockSize.matchVolume: {path} does not tell its block sizes: {error.strerror}"
            ) from None
        sizes = {
            "logical_block_size": f"{logical}",
            "physical_block_size": f"{physical}",
            "discard_granularity": f"{discard}",
        }
        disk.append(ET.Element("blockio", sizes))


def sizes_of(path: str) -> tuple[int, int, int]:
    """Logical and physical block size and the unit of discards, all in bytes; raises OSError.

    A file's are those of its file system; one that is to be made yet takes those of the directory above.
    """
    place = Path(path)
    while not place.exists() and place != place.parent:
        place = place.parent
    file = os.open(place, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    try:
        status = os.fstat(file)
        if stat.S_ISBLK(status.st_mode):
            device = f"{os.major(status.st_rdev)}:{os.minor(status.st_rdev)}"
            return fitting(_asked(file, _BLKSSZGET), _asked(file, _BLKPBSZGET), _discard_unit(device))
        size = os.fstatvfs(file).f_bsize
        return size, size, size
    finally:
        os.close(file)


def fitting(logical: int, physical: int, discard: int) -> tuple[int, int, int]:
    """What a device tells, made to fit together: neither size is 0, and discards are whole blocks; raises OSError."""
    if not logical and not physical:
        raise OSError(0, "both are 0")
    logical, physical = logical or physical, physical or logical
    return logical, physical, physical if discard % logical else discard


def _asked(device: int, what: int) -> int:
    import fcntl  # noqa: PLC0415 - few VMs need it

    return int.from_bytes(fcntl.ioctl(device, what, bytes(4)), sys.byteorder)


def _discard_unit(device: str) -> int:
    try:
        return int((_DEVICES / device / "queue/discard_granularity").read_text(encoding="ascii"))
    except (FileNotFoundError, ValueError):
        return 0  # a partition, or a device without discards


def _matches(disk: Mapping[str, Any]) -> bool:
    size = disk.get("blockSize") or {}
    wish = size.get("matchVolume")
    return wish is not None and size.get("custom") is None and wish.get("enabled") is not False
