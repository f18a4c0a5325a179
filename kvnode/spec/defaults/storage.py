"""Disks and the images behind them."""

from __future__ import annotations

from typing import Any


def default_pull_policies(spec: dict[str, Any]) -> None:
    """Pull a container disk's image always if it has no tag or digest, or the tag ``latest``.

    As Kubernetes has it. The reference takes the colon before a registry's port for a tag's, and never pulls
    such an image again (``pkg/defaults/defaults.go:232-244``).
    """
    for volume in spec.get("volumes", ()):
        disk = volume.get("containerDisk")
        if disk is None or disk.get("imagePullPolicy"):
            continue
        image = disk.get("image", "")
        name = image.rpartition("/")[2]
        floating = image.endswith(":latest") or not (":" in name or "@" in image)
        disk["imagePullPolicy"] = "Always" if floating else "IfNotPresent"


def disks_for_volumes(spec: dict[str, Any]) -> None:
    """Append a disk for each volume that no disk or file system is named after (``pkg/util/util.go:131``)."""
    devices = spec["domain"]["devices"]
    named = {device.get("name", "") for kind in ("disks", "filesystems") for device in devices.get(kind, ())}
    missing = [volume.get("name", "") for volume in spec.get("volumes", ())]
    added = [{"name": name} for name in missing if name not in named]
    if added:
        devices["disks"] = [*devices.get("disks", ()), *added]


def default_disk_targets(devices: dict[str, Any]) -> None:
    """A disk is a disk unless it says otherwise; a CD is read-only and its tray closed.

    ``api/core/v1/defaults.go:68-85``.
    """
    for disk in devices.get("disks", ()):
        if not any(target in disk for target in ("disk", "cdrom", "lun")):
            disk["disk"] = {}
        if "cdrom" in disk:
            disk["cdrom"].setdefault("readonly", True)
            disk["cdrom"]["tray"] = disk["cdrom"].get("tray") or "closed"
        if "matchVolume" in disk.get("blockSize", ()):
            disk["blockSize"]["matchVolume"].setdefault("enabled", True)
    for gpu in devices.get("gpus", ()):
        display = gpu.get("virtualGPUOptions", {}).get("display", {})
        if "ramFB" in display:
            display["ramFB"].setdefault("enabled", True)


def default_disk_bus(domain: dict[str, Any], bus: str) -> None:
    """Put every disk that names no bus on `bus`, the architecture's usual one."""
    for disk in domain["devices"].get("disks", ()):
        for target in ("disk", "cdrom", "lun"):
            if target in disk and not disk[target].get("bus"):
                disk[target]["bus"] = bus


def default_watchdog_action(domain: dict[str, Any], model: str) -> None:
    """Give a watchdog the architecture's model, and let it reset the guest."""
    watchdog = domain["devices"].get("watchdog")
    if watchdog is not None:
        device = watchdog.setdefault(model, {})
        device["action"] = device.get("action") or "reset"
