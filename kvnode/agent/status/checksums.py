"""CRC-32 of container disks and boot images in the status, for agents of older releases (``vm.go:545-622``)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from kvnode.agent.parts import Parts
from kvnode.agent.vmi import Vmi, is_deleting, spec, status, volume_statuses, volumes

KERNEL, INITRD = "kernel-boot/kernel", "kernel-boot/initrd"
"""Under these names the mounter gives the boot files' sums; no volume's name has a slash."""


async def update_checksums(vmi: Vmi, sync_error: Exception | None, parts: Parts) -> None:
    """Set the sums that are missing, as numbers of 0 to 4294967295.

    They are left out where images are mounted as volumes: no older agent could take such a VMI over.
    """
    if sync_error is not None or is_deleting(vmi) or parts.config.gate("ImageVolume"):
        return
    if not _is_missing(vmi):
        return
    sums = await parts.disks.checksums(vmi)
    if sums is None:
        return
    for one in volume_statuses(vmi):
        if one.get("name") in sums:
            one["containerDiskVolume"] = {"checksum": sums[one["name"]]}
    if _boot_container(vmi) is not None:
        found = {"kernelInfo": sums.get(KERNEL), "initrdInfo": sums.get(INITRD)}
        vmi["status"]["kernelBootStatus"] = {
            name: {"checksum": value} for name, value in found.items() if value is not None
        }


def _boot_container(vmi: Vmi) -> Mapping[str, Any] | None:
    firmware = (spec(vmi).get("domain") or {}).get("firmware") or {}
    container: Mapping[str, Any] | None = (firmware.get("kernelBoot") or {}).get("container")
    return container


def _is_missing(vmi: Vmi) -> bool:
    disks = {one.get("name") for one in volumes(vmi) if one.get("containerDisk") is not None}
    known = [one.get("containerDiskVolume") or {} for one in volume_statuses(vmi) if one.get("name") in disks]
    if any(not one.get("checksum") for one in known):
        return True
    container = _boot_container(vmi)
    if container is None:
        return False
    boot = status(vmi).get("kernelBootStatus") or {}
    wanted = {"kernelInfo": container.get("kernelPath"), "initrdInfo": container.get("initrdPath")}
    missing = [name for name, path in wanted.items() if path and not (boot.get(name) or {}).get("checksum")]
    return not boot or bool(missing)
