"""Status fields that come from the domain and from the launcher's files (``pkg/virt-handler/vm.go:700-1110``)."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping
from typing import Any

from kvnode.agent.domain import Domain
from kvnode.agent.errors import FAILURES
from kvnode.agent.interfaces import interface_statuses
from kvnode.agent.parts import Parts
from kvnode.agent.status.volumes import update_volumes
from kvnode.agent.vmi import (
    Vmi,
    by_name,
    devices,
    is_running,
    key_of,
    metadata,
    status,
    volume_statuses,
    volumes,
)
from kvnode.api.quantity import Quantity

logger = logging.getLogger(__name__)

_OS_FIELDS = {
    "name": "Name",
    "version": "Version",
    "kernelRelease": "KernelRelease",
    "prettyName": "PrettyName",
    "versionId": "VersionId",
    "kernelVersion": "KernelVersion",
    "machine": "Machine",
    "id": "Id",
}
_LONGEST = 256
"""Characters of what a guest says of its system: it must not fill the status."""
_BINARY = {"b": 0, "bytes": 0, "k": 10, "KiB": 10, "M": 20, "MiB": 20, "G": 30, "GiB": 30, "T": 40, "TiB": 40}
_DECIMAL = {"KB": 3, "MB": 6, "GB": 9, "TB": 12}

_EPHEMERAL = "/var/run/kubevirt-ephemeral-disks/cloud-init-data"
_PRIVATE = "/var/run/kubevirt-private"
_CLOUD_INIT = {"cloudInitNoCloud": "noCloud.iso", "cloudInitConfigDrive": "configdrive.iso"}
_CONFIG = {
    "configMap": "config-map-disks",
    "downwardAPI": "downwardapi-disks",
    "secret": "secret-disks",
    "sysprep": "sysprep-disks",
}


async def update_fields(vmi: Vmi, domain: Domain | None, parts: Parts) -> None:
    """Set all of them in ``vmi``'s status."""
    await _update_iso_sizes(vmi, parts)
    try:
        vmi["status"]["selinuxContext"] = await parts.runtime.selinux_context(vmi)
    except FAILURES as error:
        logger.warning("%s: SELinux context of the launcher: %s", key_of(vmi), error)
    if domain is not None:
        update_guest_os(vmi, domain)
    update_volumes(vmi, domain, parts)
    if domain is None:
        return
    update_freeze(vmi, domain)
    update_machine(vmi, domain)
    update_memory(vmi, domain)
    vmi["status"]["interfaces"] = interface_statuses(vmi, domain, parts.network)


def update_guest_os(vmi: Vmi, domain: Domain) -> None:
    """``guestOSInfo``, when the guest's agent names another system than is known."""
    told = {
        field: str(domain.state("OSInfo", source) or "")[:_LONGEST] for field, source in _OS_FIELDS.items()
    }
    known = status(vmi).get("guestOSInfo") or {}
    if told["name"] and known.get("name") != told["name"]:
        vmi["status"]["guestOSInfo"] = {field: value for field, value in told.items() if value}


def update_freeze(vmi: Vmi, domain: Domain) -> None:
    """``fsFreezeStatus``: whether the guest's file systems stand still; as it was where nothing was told."""
    told = domain.state("FSFreezeStatus", "Status")
    if told == "thawed":
        vmi["status"].pop("fsFreezeStatus", None)
    elif told:
        vmi["status"]["fsFreezeStatus"] = told


def update_machine(vmi: Vmi, domain: Domain) -> None:
    """``machine.type`` under the name that libvirt made of it."""
    if machine := domain.spec("OS", "Type", "Machine"):
        vmi["status"]["machine"] = {"type": machine}


def update_memory(vmi: Vmi, domain: Domain) -> None:
    """``memory.guestCurrent``: what the balloon leaves to the guest."""
    value, unit = domain.spec("CurrentMemory", "Value"), domain.spec("CurrentMemory", "Unit")
    if domain.spec("CurrentMemory") is None:
        return
    memory = {**(status(vmi).get("memory") or {})}
    current = libvirt_quantity(value if isinstance(value, int) else 0, str(unit or ""))
    if current is None:
        memory.pop("guestCurrent", None)
    else:
        memory["guestCurrent"] = current
    vmi["status"]["memory"] = memory


def libvirt_quantity(value: int, unit: str) -> str | None:
    """A size of libvirt's as a Kubernetes quantity; None for a unit that is none, or a size that no machine has."""
    size = value << _BINARY[unit] if unit in _BINARY else value * 10 ** _DECIMAL.get(unit, 0)
    if unit not in (*_BINARY, *_DECIMAL) or not 0 <= size < 1 << 63:
        return None
    return str(Quantity.from_bytes(size) if unit in _BINARY else Quantity(size))


async def _update_iso_sizes(vmi: Vmi, parts: Parts) -> None:
    """``volumeStatus[].size`` in bytes of images that the launcher made for a VM that runs."""
    if not is_running(vmi) or parts.node not in (status(vmi).get("activePods") or {}).values():
        return
    sizes = {one.get("name"): one for one in volume_statuses(vmi)}
    for name, path in iso_paths(vmi):
        if name not in sizes:
            continue
        try:
            sizes[name]["size"] = await parts.runtime.file_size(vmi, path)
        except FAILURES as error:
            logger.warning("%s: size of volume %s: %s", key_of(vmi), name, error)


def iso_paths(vmi: Vmi) -> Iterator[tuple[str, str]]:
    """Volumes that are disks with a generated image, and the image's path in the launcher."""
    found = by_name(volumes(vmi))
    for disk in devices(vmi).get("disks") or ():
        name = str(disk.get("name") or "")
        if name in found and (path := _iso_path(vmi, found[name])):
            yield name, path


def _iso_path(vmi: Vmi, volume: Mapping[str, Any]) -> str:
    for source, file in _CLOUD_INIT.items():
        if volume.get(source) is not None:
            return f"{_EPHEMERAL}/{metadata(vmi).get('namespace')}/{metadata(vmi).get('name')}/{file}"
    for source, folder in _CONFIG.items():
        if volume.get(source) is not None:
            return f"{_PRIVATE}/{folder}/{volume.get('name')}.iso"
    if volume.get("serviceAccount") is not None:
        return f"{_PRIVATE}/service-account-disk/service-account.iso"
    return ""
