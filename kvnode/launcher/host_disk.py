"""Host disks: files of the machine, made sparse when they are missing and that was asked for."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from kvnode.api.quantity import Quantity
from kvnode.launcher import paths
from kvnode.launcher.errors import LauncherError
from kvnode.launcher.image import whole_mebibytes
from kvnode.launcher.log import logger
from kvnode.launcher.ownership import give_to_qemu

# What a cluster has unless it is told otherwise (``pkg/virt-config/virt-config.go:70``).
_TOLERATED_PERCENT = 10
_RESERVE = 128 << 10


def prepare(vmi: Mapping[str, Any]) -> None:
    """Make missing disks of type DiskOrCreate (``pkg/host-disk/host-disk.go:238``); raises LauncherError.

    A disk that exists is left as it is, whatever its size. One that the file system has no room for is made
    up to a tenth smaller, else refused, as is one that is there but no regular file or block device.
    """
    for volume in vmi["spec"].get("volumes") or []:
        source = volume.get("hostDisk")
        if not source:
            continue
        path = paths.host_disk(volume["name"], str(source.get("path", "")))
        name = f"volume {volume['name']}"
        if path.is_file() or path.is_block_device():
            continue
        if path.is_symlink() or path.exists():
            raise LauncherError("DiskFailed", f"{name}: hostDisk.path is neither a file nor a block device")
        if source.get("type") != "DiskOrCreate":
            raise LauncherError(
                "DiskFailed", f"{name}: {source.get('path')} does not exist, and type is Disk"
            )
        _create(path, _capacity(source, name), name)


def _capacity(source: Mapping[str, Any], name: str) -> int:
    try:
        size = whole_mebibytes(Quantity(source.get("capacity") or "0").value)
    except (ValueError, TypeError):
        size = 0
    if size <= 0:
        raise LauncherError("DiskFailed", f"{name}: hostDisk.capacity must be 1Mi or more")
    return size


def _create(path: Path, size: int, name: str) -> None:
    try:
        size = _fitting(path.parent, size, name)
        with path.open("xb") as file:
            file.truncate(size)
        give_to_qemu(path)
    except OSError as error:
        path.unlink(missing_ok=True)
        raise LauncherError("DiskFailed", f"{name}: the disk cannot be made: {error.strerror}") from None


def _fitting(directory: Path, size: int, name: str) -> int:
    """Return the size that the file system has room for, if it is close to ``size``; raises LauncherError.

    Storage is often given out a little smaller than asked for (``pkg/host-disk/host-disk.go:297``).
    """
    system = os.statvfs(directory)
    available = system.f_bavail * system.f_frsize - _RESERVE
    if size <= available:
        return size
    if size * (100 - _TOLERATED_PERCENT) // 100 > available:
        raise LauncherError(
            "DiskFailed", f"{name}: {size} bytes do not fit: {max(available, 0)} are free for hostDisk.path"
        )
    logger.warning("%s: %d bytes of %d fit: the disk is made smaller", name, available, size)
    return whole_mebibytes(available)
