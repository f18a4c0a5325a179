"""Controllers: USB, SCSI, the PCIe root, virtio-serial."""

from __future__ import annotations

from typing import Any

import pytest

from tests.fast.helpers import canonical, devices, domain, merged, xml


def controllers(fragment: dict[str, Any] | None = None, **context: Any) -> dict[str, Any]:
    return {c.get("type", ""): c for c in domain(fragment, **context).findall("devices/controller")}


def with_disk(bus: str, **disk: Any) -> dict[str, Any]:
    volumes = {"spec": {"volumes": [{"name": "d", "emptyDisk": {}}]}}
    return merged(devices(disks=[{"name": "d", "disk": {"bus": bus}, **disk}]), volumes)


def test_a_plain_vm() -> None:
    found = domain().findall("devices/controller")
    assert [canonical(c) for c in found] == [
        xml('<controller type="usb" index="0" model="none"/>'),
        xml('<controller type="scsi" index="0" model="virtio-non-transitional"/>'),
        xml('<controller type="virtio-serial" index="0" model="virtio-non-transitional"/>'),
    ]


@pytest.mark.parametrize(
    ("fragment", "model"),
    [
        (devices(inputs=[{"name": "t", "type": "tablet", "bus": "usb"}]), "qemu-xhci"),
        (devices(inputs=[{"name": "t", "type": "tablet"}]), "qemu-xhci"),
        (devices(inputs=[{"name": "t", "type": "tablet", "bus": "virtio"}]), "none"),
        (devices(clientPassthrough={}), "qemu-xhci"),
        (with_disk("usb"), "qemu-xhci"),
        (with_disk("sata"), "none"),
    ],
)
def test_usb_is_there_when_something_needs_it(fragment: dict[str, Any], model: str) -> None:
    assert controllers(fragment)["usb"].get("model") == model


@pytest.mark.parametrize(("architecture", "model"), [("arm64", "qemu-xhci"), ("s390x", "none")])
def test_usb_of_other_architectures(architecture: str, model: str) -> None:
    assert controllers(architecture=architecture)["usb"].get("model") == model


def test_scsi_goes_when_neither_hotplug_nor_a_disk_needs_it() -> None:
    no_hotplug = devices(disableHotplug=True)
    assert "scsi" not in controllers(no_hotplug)
    assert "scsi" in controllers(merged(with_disk("scsi"), no_hotplug))


def test_scsi_model_on_s390x() -> None:
    assert controllers(architecture="s390x")["scsi"].get("model") == "virtio-scsi"


def test_a_scsi_disk_with_a_thread_of_its_own_gives_the_controller_one() -> None:
    disks = [
        {"name": "a", "disk": {"bus": "virtio"}},
        {"name": "b", "disk": {"bus": "scsi"}, "dedicatedIOThread": True},
    ]
    volumes = {"spec": {"volumes": [{"name": name, "emptyDisk": {}} for name in "ab"]}}
    fragment = merged(devices(disks=disks), volumes)
    fragment["spec"]["domain"].update(ioThreadsPolicy="auto", resources={"requests": {"cpu": "4"}})
    driver = controllers(fragment)["scsi"].find("driver")
    assert driver.attrib == {"iothread": "1", "queues": "2"}


def test_a_shared_thread_is_not_for_scsi() -> None:
    fragment = with_disk("scsi")
    fragment["spec"]["domain"]["ioThreadsPolicy"] = "auto"
    assert controllers(fragment)["scsi"].find("driver") is None


@pytest.mark.parametrize(
    ("value", "architecture", "there"),
    [("true", "amd64", True), ("TRUE", "amd64", True), ("yes", "amd64", False), ("true", "arm64", False)],
)
def test_the_64_bit_hole_can_be_closed(value: str, architecture: str, there: bool) -> None:
    fragment = {"metadata": {"annotations": {"kubevirt.io/disablePCIHole64": value}}}
    root = controllers(fragment, architecture=architecture).get("pci")
    assert (root is not None) == there
    if root is not None:
        assert canonical(root.find("pcihole64")) == xml('<pcihole64 unit="KiB">0</pcihole64>')


def test_no_serial_console_no_serial_controller() -> None:
    assert "virtio-serial" not in controllers(devices(autoattachSerialConsole=False))
