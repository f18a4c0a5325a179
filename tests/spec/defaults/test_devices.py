"""Disks, volumes, networks, features, timers, probes: what is there after defaulting."""

from __future__ import annotations

from typing import Any

import pytest

from kvnode.spec.defaults import DefaultingError, apply_defaults


def spec(architecture: str = "amd64", config: Any = None, **members: Any) -> dict[str, Any]:
    """The defaulted spec of a VM with these members; ``domain`` and ``devices`` go where they belong."""
    devices = members.pop("devices", {})
    domain = {"devices": devices, **members.pop("domain", {})}
    made: dict[str, Any] = apply_defaults({"spec": {"domain": domain, **members}}, architecture, config)[
        "spec"
    ]
    return made


@pytest.mark.parametrize(
    ("image", "policy"),
    [
        ("fedora", "Always"),
        ("fedora:latest", "Always"),
        ("fedora:39", "IfNotPresent"),
        ("fedora@sha256:0", "IfNotPresent"),
        ("registry:5000/fedora", "Always"),
        ("registry:5000/fedora:39", "IfNotPresent"),
        ("registry:5000/fedora:latest", "Always"),
    ],
)
def test_pull_policy(image: str, policy: str) -> None:
    made = spec(volumes=[{"name": "a", "containerDisk": {"image": image}}])
    assert made["volumes"][0]["containerDisk"]["imagePullPolicy"] == policy


def test_a_pull_policy_that_is_set_stays() -> None:
    made = spec(volumes=[{"name": "a", "containerDisk": {"image": "fedora", "imagePullPolicy": "Never"}}])
    assert made["volumes"][0]["containerDisk"]["imagePullPolicy"] == "Never"


def test_volumes_get_disks() -> None:
    made = spec(
        volumes=[{"name": name, "emptyDisk": {"capacity": "1Gi"}} for name in "abc"],
        devices={"disks": [{"name": "b", "lun": {}}], "filesystems": [{"name": "c", "virtiofs": {}}]},
    )
    assert made["domain"]["devices"]["disks"] == [
        {"name": "b", "lun": {"bus": "sata"}},
        {"name": "a", "disk": {"bus": "sata"}},
    ]


@pytest.mark.parametrize(
    ("architecture", "bus"), [("amd64", "sata"), ("arm64", "virtio"), ("s390x", "virtio")]
)
def test_disk_bus(architecture: str, bus: str) -> None:
    disks = [{"name": "a"}, {"name": "b", "cdrom": {}}, {"name": "c", "disk": {"bus": "scsi"}}]
    assert spec(architecture, devices={"disks": disks})["domain"]["devices"]["disks"] == [
        {"name": "a", "disk": {"bus": bus}},
        {"name": "b", "cdrom": {"bus": bus, "readonly": True, "tray": "closed"}},
        {"name": "c", "disk": {"bus": "scsi"}},
    ]


def test_a_cd_may_be_writable_and_open() -> None:
    cdrom = {"readonly": False, "tray": "open", "bus": "scsi"}
    made = spec(devices={"disks": [{"name": "a", "cdrom": dict(cdrom)}]})
    assert made["domain"]["devices"]["disks"][0]["cdrom"] == cdrom


def test_parts_that_are_there_are_on() -> None:
    made = spec(
        devices={
            "disks": [{"name": "a", "blockSize": {"matchVolume": {}}}],
            "gpus": [{"name": "g", "deviceName": "d", "virtualGPUOptions": {"display": {"ramFB": {}}}}],
        },
        domain={
            "features": {"apic": {}, "smm": {}, "pvspinlock": {"enabled": False}},
            "clock": {"timer": {"hpet": {}, "kvm": {"present": False}}},
        },
    )["domain"]
    assert made["devices"]["disks"][0]["blockSize"] == {"matchVolume": {"enabled": True}}
    display = made["devices"]["gpus"][0]["virtualGPUOptions"]["display"]
    assert display == {"ramFB": {"enabled": True}}
    assert made["features"] == {
        "acpi": {"enabled": True},
        "apic": {"enabled": True},
        "smm": {"enabled": True},
        "pvspinlock": {"enabled": False},
    }
    assert made["clock"]["timer"] == {"hpet": {"present": True}, "kvm": {"present": False}}


@pytest.mark.parametrize(
    ("architecture", "acpi", "enabled"),
    [("amd64", None, True), ("s390x", None, False), ("s390x", True, True), ("amd64", False, False)],
)
def test_acpi(architecture: str, acpi: bool | None, enabled: bool) -> None:
    features = {} if acpi is None else {"acpi": {"enabled": acpi}}
    assert spec(architecture, domain={"features": features})["domain"]["features"]["acpi"] == {
        "enabled": enabled
    }


@pytest.mark.parametrize(
    ("architecture", "watchdog"),
    [
        ("amd64", {"i6300esb": {"action": "reset"}}),
        ("s390x", {"diag288": {"action": "reset"}}),
        ("arm64", {}),
    ],
)
def test_watchdog(architecture: str, watchdog: dict[str, Any]) -> None:
    made = spec(architecture, devices={"watchdog": {"name": "w"}})["domain"]["devices"]["watchdog"]
    assert made == {"name": "w", **watchdog}


def test_inputs_are_usb_tablets() -> None:
    made = spec(devices={"inputs": [{"name": "a"}, {"name": "b", "bus": "virtio"}]})["domain"]["devices"]
    assert made["inputs"] == [
        {"name": "a", "bus": "usb", "type": "tablet"},
        {"name": "b", "bus": "virtio", "type": "tablet"},
    ]


def test_probe_timings() -> None:
    made = spec(livenessProbe={"tcpSocket": {"port": 22}, "periodSeconds": 5, "failureThreshold": -1})
    assert made["livenessProbe"] == {
        "tcpSocket": {"port": 22},
        "timeoutSeconds": 1,
        "periodSeconds": 5,
        "successThreshold": 1,
        "failureThreshold": 3,
    }


@pytest.mark.parametrize(
    ("firmware", "bootloader"),
    [
        ({}, {"efi": {"secureBoot": False}}),
        ({"bootloader": {"efi": {"secureBoot": True}}}, {"efi": {"secureBoot": True}}),
        ({"bootloader": {"efi": {"persistent": True}}}, {"efi": {"persistent": True, "secureBoot": False}}),
        ({"bootloader": {"bios": {}}}, {"bios": {}}),
        ({"bootloader": {}}, {}),
    ],
)
def test_arm64_boots_by_efi(firmware: dict[str, Any], bootloader: dict[str, Any]) -> None:
    assert spec("arm64", domain={"firmware": firmware})["domain"]["firmware"]["bootloader"] == bootloader


@pytest.mark.parametrize(
    ("architecture", "cluster", "model"),
    [
        ("amd64", "", "host-model"),
        ("amd64", "Haswell", "Haswell"),
        ("s390x", "", "host-model"),
        ("arm64", "Haswell", "host-passthrough"),
    ],
)
def test_cpu_model(architecture: str, cluster: str, model: str) -> None:
    assert spec(architecture, {"cpuModel": cluster})["domain"]["cpu"]["model"] == model


@pytest.mark.parametrize("binding", ["bridge", "masquerade"])
def test_the_pod_network_is_attached(binding: str) -> None:
    made = spec(config={"network": {"defaultNetworkInterface": binding}})
    assert made["domain"]["devices"]["interfaces"] == [{"name": "default", binding: {}}]
    assert made["networks"] == [{"name": "default", "pod": {}}]


@pytest.mark.parametrize(
    "members",
    [
        {"devices": {"autoattachPodInterface": False}},
        {"devices": {"interfaces": [{"name": "a", "masquerade": {}}]}},
        {"networks": [{"name": "a", "pod": {}}]},
    ],
)
def test_no_network_is_attached(members: dict[str, Any]) -> None:
    given = {"interfaces": members.get("devices", {}).get("interfaces"), "networks": members.get("networks")}
    made = spec(**members)
    assert made["domain"]["devices"].get("interfaces") == given["interfaces"]
    assert made.get("networks") == given["networks"]


@pytest.mark.parametrize(
    "network",
    [{"permitBridgeInterfaceOnPodNetwork": False}, {"defaultNetworkInterface": "slirp"}],
)
def test_a_default_binding_that_cannot_be(network: dict[str, Any]) -> None:
    with pytest.raises(DefaultingError) as refusal:
        spec(config={"network": network})
    assert refusal.value.field == "spec.configuration.network.defaultNetworkInterface"
    assert "set " in refusal.value.message
