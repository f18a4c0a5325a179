"""Disks of files that Kubernetes puts into the pod: configMap, secret, downwardAPI, sysprep, service account.

Each is an ISO of the directory that kubelet mounted.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from kvnode.launcher import iso, paths
from kvnode.launcher.errors import LauncherError

_REASON = "ConfigDiskFailed"
_LABEL = "cfgdata"
_SYSPREP_LABEL = "unattendCD"
# One of these is what Windows Setup looks for, in any case of letters.
_UNATTEND = frozenset({"autounattend.xml", "unattend.xml"})


def prepare(vmi: Mapping[str, Any], *, empty: bool = False) -> None:
    """Write the ISOs (``pkg/config``), in the reference's order; raises LauncherError.

    A volume without a disk gets none, sysprep volumes apart. ``empty``: on a migration's target, images of the
    size in the VMI's status, which the migration fills.
    """
    _by_disks(vmi, "configMap", empty)
    _by_disks(vmi, "secret", empty)
    _syspreps(vmi, empty)
    _by_disks(vmi, "downwardAPI", empty)
    _by_disks(vmi, "serviceAccount", empty)


def _places(kind: str, volume: str) -> tuple[Path, Path]:
    """Where a volume's files are, and where its ISO goes."""
    if kind == "serviceAccount":
        return paths.SERVICE_ACCOUNT, paths.SERVICE_ACCOUNT_DISK / "service-account.iso"
    sources, disks = {
        "configMap": (paths.CONFIG_MAPS, paths.CONFIG_MAP_DISKS),
        "secret": (paths.SECRETS, paths.SECRET_DISKS),
        "sysprep": (paths.SYSPREPS, paths.SYSPREP_DISKS),
        "downwardAPI": (paths.DOWNWARD_APIS, paths.DOWNWARD_API_DISKS),
    }[kind]
    return sources / volume, disks / f"{volume}.iso"


def _volumes(vmi: Mapping[str, Any], kind: str) -> Iterator[tuple[str, Mapping[str, Any]]]:
    for volume in vmi["spec"].get("volumes") or []:
        if volume.get(kind) is not None:
            yield volume["name"], volume[kind]


def _by_disks(vmi: Mapping[str, Any], kind: str, empty: bool) -> None:
    volumes = dict(_volumes(vmi, kind))
    devices = vmi["spec"].get("domain", {}).get("devices") or {}
    for disk in devices.get("disks") or []:
        name = disk["name"]
        if name not in volumes:
            continue
        directory, target = _places(kind, name)
        files = _files(directory, name)
        label = "" if kind == "serviceAccount" else str(volumes[name].get("volumeLabel") or "")
        _write(target, label or _LABEL, files, _size(vmi, name) if empty else 0)


def _syspreps(vmi: Mapping[str, Any], empty: bool) -> None:
    for name, source in _volumes(vmi, "sysprep"):
        if source.get("configMap") is None and source.get("secret") is None:
            continue
        directory, target = _places("sysprep", name)
        size = _size(vmi, name) if empty else 0
        files = _files(directory, name)
        if not any(file.lower() in _UNATTEND for file in files):
            raise LauncherError(
                _REASON, f"volume {name}: sysprep needs a file autounattend.xml or unattend.xml"
            )
        _write(target, _SYSPREP_LABEL, files, size)


def _files(directory: Path, volume: str) -> dict[str, Path]:
    try:
        return {file.name: file for file in sorted(directory.iterdir(), key=os.fsencode)}
    except OSError as error:
        raise LauncherError(_REASON, f"volume {volume}: its files cannot be read: {error.strerror}") from None


def _write(target: Path, label: str, files: dict[str, Path], size: int) -> None:
    if size:
        iso.write_empty(target, size, _REASON)
    else:
        iso.write_files(target, label, files, _REASON)


def _size(vmi: Mapping[str, Any], volume: str) -> int:
    """The size of a volume's image on the other side of a migration, in bytes."""
    for status in (vmi.get("status") or {}).get("volumeStatus") or []:
        if status.get("name") == volume:
            return int(status.get("size") or 0)
    raise LauncherError(_REASON, f"volume {volume}: status.volumeStatus does not tell its size")
