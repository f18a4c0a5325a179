"""Defaults of arm64 (``pkg/defaults/arm64.go``)."""

from __future__ import annotations

from typing import Any

from kvnode.spec.defaults.storage import default_disk_bus


def default_domain(domain: dict[str, Any]) -> None:
    """The host's CPU as it is, EFI without secure boot, and disks on virtio: QEMU has no SATA here."""
    cpu = domain["cpu"]
    cpu["model"] = cpu.get("model") or "host-passthrough"
    firmware = domain["firmware"]
    if "bootloader" not in firmware:
        firmware["bootloader"] = {"efi": {}}
    if "efi" in firmware["bootloader"]:
        firmware["bootloader"]["efi"].setdefault("secureBoot", False)
    default_disk_bus(domain, "virtio")
