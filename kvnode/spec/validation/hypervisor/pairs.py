"""Fields that libvirt does not take together."""

from __future__ import annotations

from kvnode.spec.validation.disks import device_bus, device_kind
from kvnode.spec.validation.review import Review, feature_on


def check_efi_without_acpi(review: Review) -> None:
    """libvirt hands EFI over to an x86 guest by ACPI."""
    acpi = (review.domain.get("features") or {}).get("acpi")
    bootloader = (review.domain.get("firmware") or {}).get("bootloader") or {}
    if review.architecture == "amd64" and "efi" in bootloader and acpi is not None and not feature_on(acpi):
        review.invalid("domain.features.acpi.enabled", "is false: libvirt wants ACPI together with EFI")


def check_serial_bios(review: Review) -> None:
    """The firmware's messages need a serial port, and are x86's."""
    bios = ((review.domain.get("firmware") or {}).get("bootloader") or {}).get("bios") or {}
    if not bios.get("useSerial"):
        return
    path = "domain.firmware.bootloader.bios.useSerial"
    if review.architecture != "amd64":
        review.invalid(path, f"is true, which libvirt refuses on {review.architecture}")
    elif review.devices.get("autoattachSerialConsole") is False:
        review.invalid(path, "is true without a serial console, which libvirt refuses")


def check_usb_devices(review: Review) -> None:
    """Devices on USB for which KubeVirt adds no controller (`arch/{amd64,s390x}.go`, IsUSBNeeded)."""
    buses = [(device_kind(disk) or "disk", device_bus(disk)) for disk in review.disks]
    inputs = [device.get("bus") or "usb" for device in review.devices.get("inputs", [])]
    if review.architecture == "s390x":
        for index, bus in enumerate(inputs):
            if bus == "usb":
                review.invalid(f"domain.devices.inputs[{index}].bus", "is usb, which s390x does not have")
        return
    wanted = ("disk", "usb") in buses or "usb" in inputs or "clientPassthrough" in review.devices
    if review.architecture != "amd64" or wanted:
        return
    for index, (kind, bus) in enumerate(buses):
        if bus == "usb" and kind == "cdrom":  # a lun on USB is refused in any case
            path = f"domain.devices.disks[{index}].cdrom.bus"
            review.invalid(path, "is usb, for which KubeVirt adds a controller for disks and inputs only")


RULES = (check_efi_without_acpi, check_serial_bios, check_usb_devices)
