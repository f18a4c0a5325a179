"""The ISO of a cloud-init volume."""

from __future__ import annotations

import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from kvnode.launcher import iso, paths
from kvnode.launcher.cloudinit import metadata
from kvnode.launcher.cloudinit.data import CONFIG_DRIVE, REASON, CloudInitData, read
from kvnode.launcher.errors import LauncherError

#: Volume labels that cloud-init looks for.
LABEL, CONFIG_DRIVE_LABEL = "cidata", "config-2"

_CONFIG_DRIVE_DIRECTORY = "openstack/latest"


def prepare(vmi: Mapping[str, Any]) -> None:
    """Read the VMI's cloud-init volume and write its ISO at once, without devices; raises LauncherError."""
    data = read(vmi)
    if data is not None:
        generate(vmi, data)


def iso_path(vmi: Mapping[str, Any], source: str) -> Path:
    """Return where the domain looks for the ISO of a data source."""
    where = paths.config_drive_iso if source == CONFIG_DRIVE else paths.no_cloud_iso
    return where(vmi["metadata"]["namespace"], vmi["metadata"]["name"])


def generate(
    vmi: Mapping[str, Any], data: CloudInitData, devices: Sequence[Mapping[str, Any]] | None = None
) -> None:
    """Write the ISO whole or not at all (``pkg/cloud-init/cloud-init.go:554``); raises LauncherError.

    ``devices`` are the tagged ones, which a ConfigDrive tells. The files that the ISO is made of do not stay.
    """
    target = iso_path(vmi, data.source)
    directory = target.parent / "data"
    label = CONFIG_DRIVE_LABEL if data.source == CONFIG_DRIVE else LABEL
    try:
        for name, content in _files(vmi, data, devices).items():
            file = directory / name
            file.parent.mkdir(parents=True, exist_ok=True)
            file.unlink(missing_ok=True)
            file.touch(mode=0o600)
            file.write_bytes(content)
        iso.write_tree(target, label, directory, REASON)
    except OSError as error:
        raise LauncherError(REASON, f"the cloud-init disk cannot be written: {error.strerror}") from None
    finally:
        shutil.rmtree(directory, ignore_errors=True)


def generate_empty(vmi: Mapping[str, Any], data: CloudInitData, size: int) -> None:
    """Write an ISO of ``size`` zeros on a migration's target; raises LauncherError."""
    iso.write_empty(iso_path(vmi, data.source), size, REASON)


def _files(
    vmi: Mapping[str, Any], data: CloudInitData, devices: Sequence[Mapping[str, Any]] | None
) -> dict[str, bytes]:
    """Name to content; network data are there only when there are any."""
    if not data.user_data and not data.network_data:
        raise LauncherError(REASON, f"volume {data.volume}: there must be user data or network data")
    told = data.metadata or metadata.minimal(vmi)
    if data.source == CONFIG_DRIVE:
        files = {
            "user_data": data.user_data,
            "meta_data.json": metadata.config_drive(told, vmi, devices),
            "network_data.json": data.network_data,
        }
        files = {f"{_CONFIG_DRIVE_DIRECTORY}/{name}": content for name, content in files.items()}
    else:
        files = {
            "user-data": data.user_data,
            "meta-data": metadata.no_cloud(told),
            "network-config": data.network_data,
        }
    return {name: content for name, content in files.items() if content or "network" not in name}
