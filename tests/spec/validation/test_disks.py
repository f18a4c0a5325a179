"""Rules on disks and volumes."""

from __future__ import annotations

import base64
from typing import Any

import pytest

from tests.spec.validation.build import devices, disk, found, interface, merged, volume

DISKS = "domain.devices.disks"
TWICE = f"{DISKS}.{DISKS}"


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        pytest.param({}, [], id="no target"),
        pytest.param({"disk": {}, "cdrom": {}}, [f"{DISKS}[0]"], id="two targets"),
        pytest.param({"disk": {"bus": "ide"}}, [f"{DISKS}[0].disk.bus"], id="ide"),
        pytest.param({"cdrom": {"bus": "fdc"}}, [f"{DISKS}[0].cdrom.bus"], id="unknown bus"),
        pytest.param({"cdrom": {"bus": "virtio"}}, [f"{DISKS}[0].cdrom.bus"], id="virtio CD-ROM"),
        pytest.param(
            {"disk": {"bus": "sata", "readonly": True}}, [f"{DISKS}[0].disk.bus"], id="read-only sata"
        ),
        pytest.param(
            {"disk": {"bus": "scsi"}, "dedicatedIOThread": True}, [f"{TWICE}[0]"], id="I/O thread on scsi"
        ),
        pytest.param({"disk": {"bus": "virtio"}, "dedicatedIOThread": True}, [], id="I/O thread on virtio"),
        pytest.param(
            {"disk": {"bus": "virtio", "pciAddress": "0000:81:00.0"}}, [], id="PCI address on virtio"
        ),
        pytest.param(
            {"disk": {"bus": "sata", "pciAddress": "81:00.0"}},
            [f"{TWICE}.disk[0].pciAddress"] * 2,
            id="malformed PCI address on sata",
        ),
        pytest.param({"bootOrder": 0}, [f"{DISKS}[0].bootOrder"], id="boot order 0"),
        pytest.param({"serial": "a b"}, [f"{DISKS}[0].serial"], id="blank in serial"),
        pytest.param({"serial": "a" * 256}, [], id="serial of 256"),
        pytest.param({"serial": "a" * 257}, [f"{DISKS}[0].serial"], id="serial of 257"),
        pytest.param({"cache": "unsafe"}, [f"{DISKS}[0].cache"], id="cache"),
        pytest.param({"io": "default"}, [f"{TWICE}[0].io"], id="I/O mode"),
        pytest.param({"errorPolicy": "panic"}, [f"{DISKS}[0].errorPolicy"], id="error policy"),
    ],
)
def test_disk(fields: dict[str, Any], expected: list[str]) -> None:
    assert found(disk(**fields)) == expected


def block_size(**fields: Any) -> dict[str, Any]:
    return disk(disk={"bus": "virtio"}, blockSize={"custom": fields})


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        pytest.param(block_size(logical=512, physical=4096), [], id="512 of 4096"),
        pytest.param(block_size(logical=4096, physical=512), ["custom.logical"], id="logical over physical"),
        pytest.param(block_size(logical=768, physical=1000), ["custom.logical", "custom.physical"], id="odd"),
        pytest.param(block_size(logical=256, physical=512), ["custom.logical"], id="too small"),
        pytest.param(block_size(logical=512, physical=4194304), ["custom.physical"], id="too large"),
        pytest.param(
            block_size(logical=4096, physical=4096, discardGranularity=512),
            ["custom.discardGranularity"],
            id="granularity no multiple",
        ),
        pytest.param(
            disk(disk={"bus": "sata"}, blockSize={"custom": {"logical": 4096, "physical": 4096}}),
            ["custom.logical"],
            id="4096 on sata",
        ),
        pytest.param(
            disk(blockSize={"custom": {"logical": 1, "physical": 1}, "matchVolume": {}}), [""], id="two ways"
        ),
        pytest.param(
            disk(blockSize={"custom": {"logical": 512, "physical": 512}, "matchVolume": {"enabled": False}}),
            [],
            id="matchVolume off",
        ),
    ],
)
def test_block_sizes(spec: dict[str, Any], expected: list[str]) -> None:
    assert found(spec) == [f"{DISKS}[0].blockSize.{field}".rstrip(".") for field in expected]


def test_names_are_unique_labels() -> None:
    twice = devices(disks=[{"name": "root"}, {"name": "root"}])
    assert found(twice) == [f"{DISKS}[1].name"]
    name = "Root"
    assert found(
        {**devices(disks=[{"name": name}]), "volumes": [{"name": name, "emptyDisk": {"capacity": "1Gi"}}]}
    ) == [f"{TWICE}[0].name"]


def test_boot_orders_of_disks_and_interfaces_together() -> None:
    """B37: one order is for one device, and 0 is none."""
    both = merged(disk(bootOrder=2), interface(bootOrder=2))
    assert found(both) == ["domain.devices.interfaces[0].bootOrder"]
    assert found(merged(disk(bootOrder=2), interface(bootOrder=1))) == []
    assert found(interface(bootOrder=0)) == ["spec[0].bootOrder"]


def test_an_empty_drive() -> None:
    """B27: a CD-ROM drive may be empty, with its gate; a disk or a lun may not."""
    drive = {**devices(disks=[{"name": "cd", "cdrom": {"bus": "sata"}}]), "volumes": []}
    assert found(drive) == []
    assert found(drive, off=("DeclarativeHotplugVolumes",)) == [f"{DISKS}[0].name"]
    for target in ("disk", "lun"):
        spec = {**devices(disks=[{"name": "d", target: {"bus": "scsi"}}]), "volumes": []}
        assert found(spec) == [f"{DISKS}[0].name"]


def test_luns_are_claims() -> None:
    assert found(disk(lun={"bus": "scsi"})) == []
    spec = merged(disk(lun={"bus": "scsi"}), volume(emptyDisk={"capacity": "1Gi"}))
    assert found(spec) == [f"{DISKS}[0].lun"]


def test_reservation_is_turned_on_in_the_cluster() -> None:
    spec = disk(lun={"bus": "scsi", "reservation": True})
    assert found(spec) == [f"{DISKS}.luns.reservation"]
    assert found(spec, gates=("PersistentReservation",)) == []
    assert found(spec, persistentReservationConfiguration={"enabled": True}) == []
    off = {"enabled": False}
    gates = ("PersistentReservation",)
    assert found(spec, gates=gates, persistentReservationConfiguration=off) == [f"{DISKS}.luns.reservation"]


def test_buses_on_arm64() -> None:
    assert found(disk(cdrom={"bus": "sata"}), "arm64") == [f"{DISKS}[0].cdrom.bus"]
    assert found(disk(cdrom={"bus": "scsi"}), "arm64") == []


def test_downward_metrics_are_on_a_virtio_disk() -> None:
    gates = ("DownwardMetrics",)
    source = volume(downwardMetrics={})
    assert found(source) == ["volumes[0]"]
    assert found(merged(disk(), source), gates=gates) == [f"{DISKS}[0].disk"]
    assert found(merged(disk(disk={"bus": "sata"}), source), gates=gates) == [f"{DISKS}[0].disk.bus"]
    assert found(source, gates=gates) == []


CLOUD_INIT = "volumes[0].cloudInitNoCloud"
LONG = "x" * 2049


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        pytest.param({}, ["volumes[0]"], id="no source"),
        pytest.param({"emptyDisk": {"capacity": "1Gi"}, "hostDisk": None}, [], id="null is not set"),
        pytest.param({"emptyDisk": {"capacity": "1Gi"}, "sysprep": {}}, ["volumes[0]"], id="two sources"),
        pytest.param({"dataVolume": {"name": ""}}, ["volumes[0].name"], id="data volume without name"),
        pytest.param({"configMap": {}}, ["volumes[0].configMap.name"], id="config map without name"),
        pytest.param({"secret": {}}, ["volumes[0].secret.secretName"], id="secret without name"),
        pytest.param(
            {"serviceAccount": {}},
            ["volumes[0].serviceAccount.serviceAccountName"],
            id="account without name",
        ),
        pytest.param({"containerDisk": {"image": "i", "path": "/disk/a.img"}}, [], id="path"),
        pytest.param({"containerDisk": {"image": "i", "path": "/disk/"}}, [], id="path with slash"),
        pytest.param({"containerDisk": {"image": "i", "path": "/"}}, ["volumes[0].containerDisk"], id="root"),
        pytest.param(
            {"containerDisk": {"image": "i", "path": "a.img"}}, ["volumes[0].containerDisk"], id="relative"
        ),
        pytest.param({"cloudInitNoCloud": {}}, [CLOUD_INIT], id="no data"),
        pytest.param({"cloudInitNoCloud": {"userData": "x"}}, [], id="user data"),
        pytest.param({"cloudInitNoCloud": {"networkData": "x"}}, [], id="network data"),
        pytest.param({"cloudInitNoCloud": {"secretRef": {"name": "s"}}}, [], id="data in a secret"),
        pytest.param({"cloudInitNoCloud": {"secretRef": {}}}, [CLOUD_INIT], id="secret without name"),
        pytest.param(
            {"cloudInitNoCloud": {"userData": "x", "secretRef": {"name": "s"}}},
            [CLOUD_INIT],
            id="two user data",
        ),
        pytest.param({"cloudInitNoCloud": {"userData": "x" * 2048}}, [], id="user data of 2048"),
        pytest.param({"cloudInitNoCloud": {"userData": LONG}}, [CLOUD_INIT], id="user data of 2049"),
        pytest.param({"cloudInitNoCloud": {"userData": "ü" * 1025}}, [CLOUD_INIT], id="bytes count"),
        pytest.param(
            {"cloudInitNoCloud": {"networkDataBase64": base64.b64encode(LONG.encode()).decode()}},
            [CLOUD_INIT],
            id="decoded bytes count",
        ),
        pytest.param(
            {"cloudInitConfigDrive": {"userDataBase64": "eA="}},
            ["volumes[0].cloudInitConfigDrive.userDataBase64"],
            id="not base64",
        ),
        pytest.param({"cloudInitNoCloud": {"userDataBase64": "eA=\r\n="}}, [], id="base64 with line end"),
    ],
)
def test_volume(source: dict[str, Any], expected: list[str]) -> None:
    assert found(volume(**source)) == expected


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        pytest.param({"path": "/a", "type": "Disk"}, [], id="valid"),
        pytest.param({"path": "", "type": "Disk"}, ["path"], id="no path"),
        pytest.param({"path": "/a", "type": "File"}, ["type"], id="type"),
        pytest.param({"path": "/a", "type": "Disk", "capacity": "1Gi"}, ["capacity"], id="capacity"),
        pytest.param({"path": "/a", "type": "DiskOrCreate", "capacity": "1Gi"}, [], id="create"),
    ],
)
def test_host_disk(fields: dict[str, Any], expected: list[str]) -> None:
    spec = volume(hostDisk=fields)
    assert found(spec, gates=("HostDisk",)) == [f"volumes[0].hostDisk.{field}" for field in expected]
    assert found(spec)[0] == "volumes[0]"


def test_volumes_once_and_used() -> None:
    claim = {"persistentVolumeClaim": {"claimName": "c"}}
    root = {"name": "root", **claim}
    assert found({"volumes": [root, root]}) == ["volumes[1].name"]
    assert found({"volumes": [root, {"name": "spare", **claim}]}) == ["domain.volumes[1].name"]
    assert found({"volumes": [root, {"name": "dump", "memoryDump": {"claimName": "c"}}]}) == []
    accounts = [{"name": n, "serviceAccount": {"serviceAccountName": "a"}} for n in ("root", "b")]
    assert found({**devices(disks=[{"name": "root"}, {"name": "b"}]), "volumes": accounts}) == ["volumes"]


def test_utility_volumes_come_later() -> None:
    assert found({"utilityVolumes": []}) == ["utilityVolumes"]


def test_container_paths_are_filesystems() -> None:
    path = {"name": "root", "containerPath": {"path": "/var/run/secrets"}}
    shared = devices(disks=[], filesystems=[{"name": "root", "virtiofs": {}}])
    assert found({**shared, "volumes": [path]}) == []
    assert found({"volumes": [path]}) == ["domain.volumes[0]"] * 2
    for bad in ("/var/run/kubevirt/x", "/var/run/libvirt"):
        spec = {**shared, "volumes": [{"name": "root", "containerPath": {"path": bad}}]}
        assert found(spec) == ["domain.volumes[0].containerPath.path"]


def test_storage_by_virtiofs_has_a_gate() -> None:
    shared = devices(disks=[], filesystems=[{"name": "root", "virtiofs": {}}])
    assert found(shared) == ["domain.devices.filesystems"]
    assert found(shared, gates=("EnableVirtioFsStorageVolumes",)) == []
