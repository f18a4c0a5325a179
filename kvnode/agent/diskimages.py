"""Host disks that are not there yet, made by the agent, as the launcher may not write to a folder of the node's.

``pkg/host-disk/host-disk.go:238-320``. They are the users': nothing takes them away again.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from pathlib import Path, PurePosixPath
from typing import Any

from kvnode.agent.errors import AgentError
from kvnode.agent.hostdisks import DISKS, MEBIBYTE
from kvnode.agent.ownership import QEMU_USER
from kvnode.agent.rootfs import opened
from kvnode.agent.vmi import Vmi, volumes
from kvnode.api.quantity import Quantity
from kvnode.spec.config import ClusterConfig

CREATED = "DiskOrCreate"
_MODE = 0o660


def make_host_disks(
    vmi: Vmi, root: Path, config: ClusterConfig, tell: Callable[[str], None], owner: int = QEMU_USER
) -> None:
    """Make those of type DiskOrCreate, sparse, in the launcher's root, and give them to ``owner``. Blocks.

    What is there already stays as it is. ``tell`` is told of a disk that is made smaller than asked for.

    Raises:
        AgentError: there is no room for one, or it cannot be made.
    """
    for volume in volumes(vmi):
        disk: Mapping[str, Any] | None = volume.get("hostDisk")
        if disk is None or disk.get("type") != CREATED or not disk.get("path"):
            continue
        name = str(volume.get("name"))
        try:
            _make(root, name, disk, _Room(config, tell), owner)
        except OSError as error:
            raise AgentError(
                f"volume {name}: hostDisk.path: {disk['path']} cannot be made: {error.strerror or error}"
            ) from error


class _Room:
    """How large a disk may be."""

    def __init__(self, config: ClusterConfig, tell: Callable[[str], None]) -> None:
        self._tolerated = config.less_pvc_space_toleration
        self._reserve = config.minimum_reserve_pvc_bytes
        self._tell = tell

    def fitting(self, folder: int, size: int, name: str) -> int:
        """The size, or what there is room for, if that is close enough; raises AgentError."""
        system = os.fstatvfs(folder)
        free = max(system.f_bavail * system.f_frsize - self._reserve, 0)
        if size <= free:
            return size
        if size * (100 - self._tolerated) // 100 > free:
            raise AgentError(
                f"volume {name}: hostDisk.capacity: {size} bytes do not fit where {free} are free, "
                f"not even {self._tolerated} per cent less of them"
            )
        self._tell(
            f"volume {name}: {free} bytes are free of {size} that were asked for: its disk is made smaller, "
            f"by less than the {self._tolerated} per cent that are tolerated"
        )
        return free // MEBIBYTE * MEBIBYTE


def _make(root: Path, name: str, disk: Mapping[str, Any], room: _Room, owner: int) -> None:
    image = PurePosixPath(str(disk["path"])).name
    if image in ("", ".", ".."):
        raise AgentError(f"volume {name}: hostDisk.path: must name a file, not {disk['path']!r}")
    with opened(root, f"{DISKS}/{name}", os.O_RDONLY | os.O_DIRECTORY) as folder:
        try:
            os.stat(image, dir_fd=folder, follow_symlinks=False)
        except FileNotFoundError:
            size = room.fitting(folder, _capacity(name, disk), name)
        else:
            return
        flags = os.O_CREAT | os.O_EXCL | os.O_WRONLY | os.O_NOFOLLOW | os.O_CLOEXEC
        file = os.open(image, flags, _MODE, dir_fd=folder)
        try:
            os.ftruncate(file, size)
            os.fchmod(file, _MODE)
            os.fchown(file, owner, owner)
        except BaseException:
            os.unlink(image, dir_fd=folder)
            raise
        finally:
            os.close(file)


def _capacity(name: str, disk: Mapping[str, Any]) -> int:
    """Bytes, in whole mebibytes."""
    try:
        size = Quantity.from_json(disk.get("capacity") or "0").value // MEBIBYTE * MEBIBYTE
    except (ValueError, TypeError) as error:
        raise AgentError(f"volume {name}: hostDisk.capacity: {error}") from None
    if size <= 0:
        raise AgentError(f"volume {name}: hostDisk.capacity: must be 1Mi or more")
    return size
