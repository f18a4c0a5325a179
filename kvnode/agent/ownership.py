"""Device nodes and disk files, given to the launcher's user.

``pkg/virt-handler/controller.go:267-361``, ``pkg/virt-handler/non-root.go``
Links are not followed to device nodes: what changes hands is what kubelet and the runtime put there.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from kvnode.agent.errors import AgentError, CriticalNetworkError
from kvnode.agent.hostdisks import DISKS
from kvnode.agent.rootfs import give_away, names_in_root, opened, path_of
from kvnode.agent.vmi import (
    Vmi,
    annotations_of,
    devices,
    interfaces,
    is_sev,
    status,
    volume_statuses,
    volumes,
)
from kvnode.api.names import DEPRECATED_NON_ROOT_ANNOTATION
from kvnode.spec.config import ClusterConfig
from kvnode.spec.pod.paths import VIRTIOFS_DIR

QEMU_USER = 107
"""User and group (``pkg/util/util.go:35``)."""

_EVERYBODY = 0o666
_CLAIM = "persistentVolumeClaim"


def is_non_root(vmi: Vmi) -> bool:
    """Whether the launcher runs as the user of QEMU."""
    return bool(status(vmi).get("runtimeUser")) or DEPRECATED_NON_ROOT_ANNOTATION in annotations_of(vmi)


def claim_devices(vmi: Vmi, root: Path, config: ClusterConfig, owner: int = QEMU_USER) -> None:
    """Give all that the VM needs to ``owner``. Blocks.

    Raises:
        AgentError: something is missing, or is not what its name says.
        CriticalNetworkError: that is a device for the network.
    """
    _device(root, "kvm", owner, optional=config.use_emulation)
    if devices(vmi).get("autoattachVSOCK"):
        _device(root, "vhost-vsock", owner)
    if is_sev(vmi):
        _device(root, "sev", owner)
    if is_non_root(vmi):
        _block_volumes(vmi, root, owner)
        _host_disks(vmi, root, owner)
        _vfio(root, owner)
        try:
            _network(vmi, root, owner, emulated=config.use_emulation)
        except AgentError as error:
            raise CriticalNetworkError(str(error)) from error
    for one in devices(vmi).get("filesystems") or ():
        _give(root, f"{VIRTIOFS_DIR}/{one.get('name')}.sock", owner)


def _network(vmi: Vmi, root: Path, owner: int, *, emulated: bool) -> None:
    found = interfaces(vmi)
    if any(one.get("model") in (None, "", "virtio") for one in found) and not emulated:
        _device(root, "vhost-net", owner)
    attached = devices(vmi).get("autoattachPodInterface")
    if found or attached is None or attached:
        _device(root, "net/tun", owner)


def _block_volumes(vmi: Vmi, root: Path, owner: int) -> None:
    claims = {str(one.get("name")): one.get("persistentVolumeClaimInfo") for one in volume_statuses(vmi)}
    for volume in volumes(vmi):
        name = str(volume.get("name"))
        if volume.get(_CLAIM) is None and volume.get("dataVolume") is None:
            continue
        if (info := claims.get(name)) is None:
            if volume.get(_CLAIM) is None:
                continue
            raise AgentError(f"status.volumeStatus: volume {name} has no persistentVolumeClaimInfo")
        if info.get("volumeMode") == "Block":
            _device(root, name, owner, optional=True)


def _host_disks(vmi: Vmi, root: Path, owner: int) -> None:
    for volume in volumes(vmi):
        disk: Mapping[str, Any] | None = volume.get("hostDisk")
        if disk is None:
            continue
        image = Path(str(disk.get("path") or "")).name
        try:
            _give(root, f"{DISKS}/{volume.get('name')}/{image}", owner)
        except AgentError as error:
            if not isinstance(error.__cause__, FileNotFoundError):
                raise
            raise AgentError(
                f"volume {volume.get('name')}: hostDisk.path: {disk.get('path')} is not there, and type is not "
                "DiskOrCreate"
            ) from error


def _vfio(root: Path, owner: int) -> None:
    for name in _names(root, "dev/vfio"):
        if name != "vfio":
            _device(root, f"vfio/{name}", owner)
            continue
        try:
            with opened(root, "dev/vfio/vfio", follow=False) as device:
                path_of(device).chmod(_EVERYBODY)
        except OSError as error:
            raise _error("dev/vfio/vfio", error) from error


def _names(root: Path, folder: str) -> list[str]:
    try:
        return names_in_root(root, folder)
    except OSError as error:
        raise _error(folder, error) from error


def _device(root: Path, name: str, owner: int, *, optional: bool = False) -> None:
    path = f"dev/{name}"
    try:
        with opened(root, path, follow=False) as device:
            mode = os.fstat(device).st_mode
            if not stat.S_ISCHR(mode) and not stat.S_ISBLK(mode):
                raise AgentError(f"the launcher's /{path}: is no device")
            give_away(device, owner)
    except FileNotFoundError as error:
        if not optional:
            raise _error(path, error) from error
    except OSError as error:
        raise _error(path, error) from error


def _give(root: Path, path: str, owner: int) -> None:
    try:
        with opened(root, path) as file:
            give_away(file, owner)
    except OSError as error:
        raise _error(path, error) from error


def _error(path: str, error: OSError) -> AgentError:
    return AgentError(f"the launcher's /{path.lstrip('/')}: cannot be given to its user: {error.strerror}")
