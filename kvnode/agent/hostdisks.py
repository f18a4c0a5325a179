"""Claims with a file system, given to the launcher as host disks (``pkg/host-disk/host-disk.go:53-202``)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from kvnode.agent.errors import AgentError
from kvnode.agent.vmi import Vmi, copy_of, devices, volume_statuses, volumes
from kvnode.api.quantity import Quantity

DISKS = "/var/run/kubevirt-private/vmi-disks"
MEBIBYTE = 1 << 20


def with_host_disks(vmi: Vmi) -> Vmi:
    """A copy in which each claim with a file system is the disk image on it, made when it is missing.

    Left as they are: block devices, volumes shared as file systems, hot-plugged ones.

    Raises:
        AgentError: a claim's size is not known, or has no room for an image.
    """
    changed = copy_of(vmi)
    shared = {one.get("name") for one in devices(vmi).get("filesystems") or ()}
    statuses = {one.get("name"): one for one in volume_statuses(vmi)}
    for volume in volumes(changed):
        sources = [kind for kind in ("persistentVolumeClaim", "dataVolume") if volume.get(kind) is not None]
        one = statuses.get(volume.get("name"), {})
        claim = one.get("persistentVolumeClaimInfo")
        if not sources or claim is None or volume.get("name") in shared:
            continue
        if one.get("hotplugVolume") is not None or claim.get("volumeMode") == "Block":
            continue
        _put(changed, _replaced(volume, sources, claim))
    return changed


def _replaced(volume: Mapping[str, Any], sources: list[str], claim: Mapping[str, Any]) -> dict[str, Any]:
    name = str(volume.get("name"))
    size = _size(name, claim) // MEBIBYTE * MEBIBYTE
    if size == 0:
        raise AgentError(f"volume {name}: its claim must have room for an image of at least 1Mi")
    rest = {key: value for key, value in volume.items() if key not in sources}
    shared = "ReadWriteMany" in (claim.get("accessModes") or ())
    rest["hostDisk"] = {
        "path": f"{DISKS}/{name}/disk.img",
        "type": "DiskOrCreate",
        "capacity": _in_notation_of(claim, size),
        "shared": shared,
    }
    return rest


def _size(name: str, claim: Mapping[str, Any]) -> int:
    """Bytes of the image: what was asked for, where the claim is larger."""
    capacity = (claim.get("capacity") or {}).get("storage")
    requested = (claim.get("requests") or {}).get("storage")
    try:
        sizes = [Quantity(str(text)).value for text in (capacity, requested) if text is not None]
    except ValueError as error:
        raise AgentError(f"volume {name}: size of its claim: {error}") from None
    if not sizes:
        raise AgentError(f"volume {name}: its claim tells neither capacity nor request")
    return min(sizes)


def _in_notation_of(claim: Mapping[str, Any], size: int) -> str:
    """A size as the claim writes its own."""
    capacity = (claim.get("capacity") or {}).get("storage")
    return str(Quantity.from_bytes(size) if capacity is None else Quantity(str(capacity)).with_value(size))


def _put(vmi: Vmi, volume: dict[str, Any]) -> None:
    found = vmi["spec"]["volumes"]
    vmi["spec"]["volumes"] = [volume if one.get("name") == volume["name"] else one for one in found]
