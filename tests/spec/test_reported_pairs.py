"""Fields that are valid each by itself and that libvirt refuses together: a warning, never an error."""

from __future__ import annotations

from typing import Any

import pytest

from kvnode.spec.validation import warnings
from tests.spec.validation.build import devices, disk, domain, vmi, warned

EFI = {"bootloader": {"efi": {"secureBoot": False}}}
SERIAL_BIOS = {"bootloader": {"bios": {"useSerial": True}}}
USB_CD = {"name": "root", "cdrom": {"bus": "usb"}}
TABLET = {"name": "t", "type": "tablet", "bus": "usb"}


@pytest.mark.parametrize(
    ("spec", "fields"),
    [
        (domain(firmware=EFI, features={"acpi": {"enabled": False}}), ["domain.features.acpi.enabled"]),
        (domain(firmware=EFI, features={"acpi": {}}), []),
        (domain(firmware=EFI), []),
        (domain(features={"acpi": {"enabled": False}}), []),
        (
            domain(firmware=SERIAL_BIOS, devices={"autoattachSerialConsole": False}),
            ["domain.firmware.bootloader.bios.useSerial"],
        ),
        (domain(firmware=SERIAL_BIOS), []),
        (devices(disks=[USB_CD]), ["domain.devices.disks[0].cdrom.bus"]),
        (devices(disks=[USB_CD], inputs=[TABLET]), []),
        (devices(disks=[USB_CD], clientPassthrough={}), []),
        (disk(disk={"bus": "usb"}), []),
    ],
)
def test_on_amd64(spec: dict[str, Any], fields: list[str]) -> None:
    assert warned(spec) == fields


@pytest.mark.parametrize(
    ("spec", "fields"),
    [
        (devices(inputs=[TABLET]), ["domain.devices.inputs[0].bus"]),
        (devices(inputs=[{**TABLET, "bus": "virtio"}]), []),
        (domain(firmware=SERIAL_BIOS), ["domain.firmware.bootloader.bios.useSerial"]),
    ],
)
def test_on_s390x(spec: dict[str, Any], fields: list[str]) -> None:
    assert warned(spec, "s390x") == fields


def test_an_address_is_looked_at_whatever_is_placed_on_the_root_complex() -> None:
    """An address that the VMI names itself is kept beside that annotation."""
    annotations = {"kubevirt.io/placePCIDevicesOnRootComplex": "true"}
    given = vmi(disk(disk={"bus": "virtio", "pciAddress": "0000:0a:05.0"}), annotations=annotations)
    fields = [cause.field for cause in warnings(given, "amd64")]
    assert fields == ["spec.domain.devices.disks[0].disk.pciAddress"]


@pytest.mark.parametrize(("architecture", "most"), [("amd64", 255), ("arm64", 512), ("s390x", 248)])
def test_more_vcpus_than_the_machine_takes(architecture: str, most: int) -> None:
    assert warned(domain(cpu={"sockets": 1, "maxSockets": most}), architecture) == []
    assert warned(domain(cpu={"sockets": 1, "maxSockets": most + 1}), architecture) == [
        "domain.cpu.maxSockets"
    ]


@pytest.mark.parametrize(("model", "warns"), [("virtio", False), ("e1000e", True), ("igb", True)])
def test_passt_works_with_virtio_only(model: str, warns: bool) -> None:
    card = {"name": "default", "passtBinding": {}, "model": model}
    spec = devices(interfaces=[card])
    fields = [cause.field for cause in warnings(vmi(spec), "amd64")]
    assert fields == (["spec.domain.devices.interfaces[0].model"] if warns else [])
