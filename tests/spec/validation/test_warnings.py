"""What the rules allow and libvirt, QEMU or the launcher's pod then do not take."""

from __future__ import annotations

from typing import Any

import pytest

from kvnode.spec.validation import validate, warnings
from tests.spec.validation.build import devices, disk, domain, interface, merged, vmi, volume, warned

DISK = "domain.devices.disks[0]"
FIRST = "domain.devices.interfaces[0]"


def test_the_base_is_beyond_doubt() -> None:
    for architecture in ("amd64", "arm64", "s390x"):
        assert warned({}, architecture) == []


@pytest.mark.parametrize(
    ("bus", "length", "warns"),
    [
        pytest.param("scsi", 36, False, id="B21 scsi 36"),
        pytest.param("scsi", 37, True, id="B21 scsi 37"),
        pytest.param("usb", 37, True, id="usb 37"),
        pytest.param("virtio", 20, False, id="B21 virtio 20"),
        pytest.param("virtio", 21, True, id="B21 virtio 21"),
        pytest.param("sata", 21, True, id="sata 21"),
    ],
)
def test_serials(bus: str, length: int, warns: bool) -> None:
    assert warned(disk(disk={"bus": bus}, serial="S" * length)) == ([f"{DISK}.serial"] if warns else [])


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        pytest.param({"lun": {"bus": "scsi"}}, [], id="lun on scsi"),
        pytest.param({"lun": {"bus": "scsi"}, "serial": "S"}, ["serial"], id="lun with a serial"),
        pytest.param({"lun": {}}, ["lun.bus"], id="lun on sata, by defaulting"),
        pytest.param({"lun": {"bus": "virtio"}}, ["lun.bus"], id="lun on virtio"),
        pytest.param({"io": "native", "cache": "none"}, [], id="B25 native I/O without cache"),
        pytest.param({"io": "native", "cache": "writeback"}, ["io"], id="native I/O with cache"),
        pytest.param({"cdrom": {"bus": "sata", "tray": "open"}}, [], id="tray"),
        pytest.param({"cdrom": {"bus": "sata", "tray": "ajar"}}, ["cdrom.tray"], id="unknown tray"),
        pytest.param({"bootOrder": 2**31 - 1}, [], id="last boot order"),
        pytest.param({"bootOrder": 2**31}, ["bootOrder"], id="boot order"),
    ],
)
def test_disks(fields: dict[str, Any], expected: list[str]) -> None:
    assert warned(disk(**fields)) == [f"{DISK}.{field}" for field in expected]


@pytest.mark.parametrize(
    ("bus", "granularity", "warns"),
    [("virtio", 1048576, False), ("virtio", 2**32, True), ("sata", 512, False), ("sata", 4096, True)],
)
def test_discard_granularity(bus: str, granularity: int, warns: bool) -> None:
    custom = {"logical": 512, "physical": 512, "discardGranularity": granularity}
    expected = [f"{DISK}.blockSize.custom.discardGranularity"] if warns else []
    assert warned(disk(disk={"bus": bus}, blockSize={"custom": custom})) == expected


@pytest.mark.parametrize(
    ("fields", "warns"),
    [
        pytest.param({"pciAddress": "0000:00:1f.7"}, False, id="bus 00"),
        pytest.param({"pciAddress": "0000:81:00.0"}, False, id="root port"),
        pytest.param({"pciAddress": "0000:81:01.0"}, True, id="second slot of a root port"),
        pytest.param({"pciAddress": "0000:00:20.0"}, True, id="slot 20"),
        pytest.param({"pciAddress": "0001:01:00.0"}, True, id="domain"),
        pytest.param({"pciAddress": "0000:00:00.0"}, True, id="all zero"),
        pytest.param({"pciAddress": "0000:81:01.0", "model": "e1000"}, False, id="slot of a bridge"),
        pytest.param({"pciAddress": "0000:81:00.0", "model": "e1000"}, True, id="slot 00 of a bridge"),
    ],
)
def test_pci_addresses(fields: dict[str, Any], warns: bool) -> None:
    assert warned(interface(**fields)) == ([f"{FIRST}.pciAddress"] if warns else [])
    assert warned(interface(**fields), "s390x") == []


def test_one_device_a_pci_address() -> None:
    address = {"pciAddress": "0000:05:00.0"}
    spec = merged(disk(disk={"bus": "virtio", **address}), interface(**address))
    assert warned(spec) == [f"{FIRST}.pciAddress"]


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        pytest.param({"macAddress": "02:00:00:12:34:56"}, [], id="MAC"),
        pytest.param({"macAddress": "01:00:5e:00:00:01"}, ["macAddress"], id="multicast"),
        pytest.param({"macAddress": "02-00-00-12-34-56"}, ["macAddress"], id="dashes"),
        pytest.param({"acpiIndex": 16383}, [], id="last ACPI index"),
        pytest.param({"acpiIndex": 16384}, ["acpiIndex"], id="ACPI index"),
        pytest.param({"acpiIndex": -1}, ["acpiIndex"], id="negative ACPI index"),
        pytest.param({"bootOrder": 2**40}, ["bootOrder"], id="boot order"),
    ],
)
def test_interfaces(fields: dict[str, Any], expected: list[str]) -> None:
    assert warned(interface(**fields)) == [f"{FIRST}.{field}" for field in expected]


def test_what_interfaces_cannot_share() -> None:
    shared = {"bridge": {}, "macAddress": "02:00:00:00:00:AA", "acpiIndex": 3}
    spec = {
        **devices(interfaces=[{"name": "a", **shared}, {"name": "b", **shared}]),
        "networks": [{"name": "a", "pod": {}}, {"name": "b", "multus": {"networkName": "n"}}],
    }
    spec["domain"]["devices"]["interfaces"][1]["macAddress"] = "02:00:00:00:00:aa"
    second = "domain.devices.interfaces[1]"
    assert warned(spec) == [f"{second}.macAddress", f"{second}.acpiIndex"]


@pytest.mark.parametrize(
    ("section", "expected"),
    [
        pytest.param({"watchdog": {"name": "w", "i6300esb": {"action": "poweroff"}}}, None, id="action"),
        pytest.param(
            {"watchdog": {"name": "w", "i6300esb": {"action": "explode"}}},
            "domain.devices.watchdog.i6300esb.action",
            id="unknown action",
        ),
        pytest.param({"panicDevices": [{"model": "isa"}, {"model": "hyperv"}]}, None, id="two panic models"),
        pytest.param(
            {"panicDevices": [{"model": "isa"}] * 2}, "domain.devices.panicDevices[1].model", id="twice"
        ),
    ],
)
def test_devices(section: dict[str, Any], expected: str | None) -> None:
    assert warned(devices(**section)) == ([expected] if expected else [])


def test_panic_devices_of_x86_on_arm64() -> None:
    assert warned(devices(panicDevices=[{"model": "isa"}]), "arm64") == [
        "domain.devices.panicDevices[0].model"
    ]


HYPERV = "features.hyperv"


@pytest.mark.parametrize(
    ("section", "expected"),
    [
        pytest.param({"features": {"hyperv": {"spinlocks": {"spinlocks": 4096}}}}, [], id="spinlocks"),
        pytest.param(
            {"features": {"hyperv": {"spinlocks": {"spinlocks": 4095}}}},
            [f"{HYPERV}.spinlocks.spinlocks"],
            id="few spinlocks",
        ),
        pytest.param({"features": {"hyperv": {"spinlocks": {}}}}, [], id="spinlocks by default"),
        pytest.param(
            {"features": {"hyperv": {"spinlocks": {"enabled": False, "spinlocks": 1}}}},
            [],
            id="spinlocks off",
        ),
        pytest.param({"features": {"hyperv": {"vendorid": {"vendorid": "a" * 12}}}}, [], id="vendor"),
        pytest.param(
            {"features": {"hyperv": {"vendorid": {"vendorid": "a" * 13}}}},
            [f"{HYPERV}.vendorid.vendorid"],
            id="long vendor",
        ),
        pytest.param({"firmware": {"uuid": "5d307ca9-b3ef-428c-8861-06e72d69f223"}}, [], id="UUID"),
        pytest.param({"firmware": {"uuid": "vm-1"}}, ["firmware.uuid"], id="no UUID"),
        pytest.param({"machine": {"type": "pc-q35-rhel9.4.0"}}, [], id="machine"),
        pytest.param({"machine": {"type": "q35x"}}, ["machine.type"], id="no machine"),
        pytest.param({"cpu": {"sockets": 1, "maxSockets": 4, "cores": 63}}, [], id="252 vCPUs"),
        pytest.param(
            {"cpu": {"sockets": 1, "maxSockets": 4, "cores": 64}}, ["cpu.maxSockets"], id="256 vCPUs"
        ),
        pytest.param(
            {"cpu": {"features": [{"name": "vmx"}, {"name": "vmx", "policy": "disable"}]}},
            ["cpu.features[1].name"],
            id="feature twice",
        ),
        pytest.param({"memory": {"guest": "0"}}, ["memory.guest"], id="no memory"),
        pytest.param(
            {"memory": {"guest": "2Gi", "maxGuest": "1Gi"}}, ["memory.maxGuest"], id="small maximum"
        ),
        pytest.param({"memory": {"hugepages": {"pageSize": "1Gi"}}}, [], id="huge page"),
        pytest.param(
            {"memory": {"hugepages": {"pageSize": "4Mi"}}}, ["memory.hugepages.pageSize"], id="no huge page"
        ),
        pytest.param({"clock": {"timer": {"pit": {"tickPolicy": "discard"}}}}, [], id="tick policy"),
        pytest.param(
            {"clock": {"timer": {"rtc": {"tickPolicy": "discard", "track": "boot"}}}},
            ["clock.timer.rtc.tickPolicy", "clock.timer.rtc.track"],
            id="clock",
        ),
        pytest.param({"clock": {"timezone": ""}}, ["clock.timezone"], id="no time zone"),
        pytest.param(
            {"firmware": {"serial": "two words"}, "chassis": {"manufacturer": 'A&B <c> "d"'}},
            [],
            id="B23 strings that XML escapes",
        ),
        pytest.param({"firmware": {"serial": "a\x01b"}}, ["firmware.serial"], id="B23 control character"),
        pytest.param({"chassis": {"sku": "\ud800"}}, ["chassis.sku"], id="lone surrogate"),
    ],
)
def test_domain(section: dict[str, Any], expected: list[str]) -> None:
    assert warned(domain(**section)) == [f"domain.{field}" for field in expected]


def test_by_architecture() -> None:
    assert warned(domain(features={"hyperv": {}}), "s390x") == ["domain.features.hyperv"]
    pages = {"memory": {"hugepages": {"pageSize": "64Ki"}}}
    assert warned(domain(**pages), "arm64") == []
    assert warned(domain(**pages), "amd64") == ["domain.memory.hugepages.pageSize"]


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        pytest.param({"terminationGracePeriodSeconds": 0}, [], id="no grace"),
        pytest.param({"terminationGracePeriodSeconds": -1}, ["terminationGracePeriodSeconds"], id="less"),
        pytest.param(
            {"livenessProbe": {"guestAgentPing": {}, "periodSeconds": -1}},
            ["livenessProbe.periodSeconds"],
            id="probe",
        ),
        pytest.param({"nodeSelector": {"example.org/zone": "a", "disk": ""}}, [], id="node labels"),
        pytest.param({"nodeSelector": {"zone": "a b"}}, ["nodeSelector.zone"], id="no node label"),
        pytest.param(volume(emptyDisk={"capacity": "7G"}), [], id="B12 rounded down"),
        pytest.param(
            volume(emptyDisk={"capacity": "1000k"}), ["volumes[0].emptyDisk.capacity"], id="B12 too low"
        ),
        pytest.param(
            volume(persistentVolumeClaim={"claimName": ""}),
            ["volumes[0].persistentVolumeClaim.claimName"],
            id="no claim",
        ),
        pytest.param(volume(containerDisk={"image": ""}), ["volumes[0].containerDisk.image"], id="no image"),
    ],
)
def test_instance(spec: dict[str, Any], expected: list[str]) -> None:
    assert warned(spec) == expected


def test_a_created_host_disk_has_a_size() -> None:
    document = vmi(volume(hostDisk={"path": "/a", "type": "DiskOrCreate"}))
    assert [cause.field for cause in warnings(document, "amd64")] == ["spec.volumes[0].hostDisk.capacity"]


@pytest.mark.parametrize(
    ("metadata", "expected"),
    [
        ({}, []),
        ({"name": "web-1.example", "namespace": "shop"}, []),
        ({"name": "n" * 253}, []),
        ({"name": "n" * 254}, ["metadata.name"]),
        ({"name": "../../etc"}, ["metadata.name"]),
        ({"name": "Web", "namespace": "a.b"}, ["metadata.name", "metadata.namespace"]),
        ({"name": "x\0"}, ["metadata.name"]),
    ],
)
def test_names(metadata: dict[str, Any], expected: list[str]) -> None:
    vmi = {"metadata": metadata, "spec": {"domain": {"memory": {"guest": "64Mi"}, "devices": {}}}}
    assert validate(vmi, "amd64") == []
    assert [cause.field for cause in warnings(vmi, "amd64")] == expected
