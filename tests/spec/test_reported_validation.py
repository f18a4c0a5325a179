"""Situations that users of such systems ran into, with the right answer of validation, warnings and defaulting.

Test ids name the report.
"""

from __future__ import annotations

from typing import Any

import pytest

import kvnode
from tests.reports import report
from tests.spec.validation.build import devices, disk, domain, found, merged, vmi, volume, warned


@report("B18")
@pytest.mark.parametrize(("cpus", "most"), [("5", 5), ("2", 4)])
def test_a_cluster_s_limit_of_sockets_never_is_below_what_the_vm_has(
    reported: str, cpus: str, most: int
) -> None:
    config = {"liveUpdateConfiguration": {"maxCpuSockets": 4}}
    given = vmi(domain(resources={"limits": {"cpu": cpus}}))
    defaulted = kvnode.apply_defaults(given, "amd64", config)
    cpu = defaulted["spec"]["domain"]["cpu"]
    assert (cpu["sockets"], cpu["maxSockets"]) == (int(cpus), most)
    assert kvnode.validate(defaulted, "amd64", config) == []


@report("B20")
@pytest.mark.parametrize(
    ("memory", "resources", "fields"),
    [
        ({"guest": "2Gi"}, {}, []),
        ({"guest": "3Mi"}, {}, ["domain.resources.requests.memory"]),
        ({"guest": "1Mi"}, {}, ["domain.resources.requests.memory"]),
        ({}, {"limits": {"memory": "2Gi"}}, []),
        ({}, {"requests": {"memory": "2Gi"}}, []),
    ],
    ids=["fits", "no-multiple", "below-a-page", "limit", "request"],
)
def test_huge_pages_are_checked_against_the_guest_s_memory(
    reported: str, memory: dict[str, str], resources: dict[str, Any], fields: list[str]
) -> None:
    given = vmi(domain(resources=resources))
    given["spec"]["domain"]["memory"] = {**memory, "hugepages": {"pageSize": "2Mi"}}
    defaulted = kvnode.apply_defaults(given, "amd64")
    complaints = {cause.field for cause in kvnode.validate(defaulted, "amd64")}
    assert complaints >= {f"spec.{field}" for field in fields}
    if not fields:
        assert complaints == set()
        assert defaulted["spec"]["domain"]["memory"]["guest"] == "2Gi"


@report("B20")
def test_huge_pages_without_any_memory_are_no_crash(reported: str) -> None:
    given = vmi()
    given["spec"]["domain"]["memory"] = {"hugepages": {"pageSize": "2Mi"}}
    causes = kvnode.validate(given, "amd64")
    assert all(cause.field.startswith("spec.") for cause in causes)


@report("B21")
@pytest.mark.parametrize(
    ("bus", "length", "warns"),
    [
        ("scsi", 36, False),
        ("scsi", 37, True),
        ("virtio", 20, False),
        ("virtio", 21, True),
        ("sata", 20, False),
    ],
)
def test_a_serial_that_the_disk_cannot_carry_is_a_warning(
    reported: str, bus: str, length: int, warns: bool
) -> None:
    fields = warned(disk(disk={"bus": bus}, serial="S" * length))
    assert fields == (["domain.devices.disks[0].serial"] if warns else [])


@report("B23")
def test_strings_with_blanks_and_xml_s_own_characters_are_valid(reported: str) -> None:
    strings = {
        "firmware": {"serial": "two words"},
        "chassis": {"manufacturer": "A&B <c>", "asset": "q\"uote'"},
    }
    assert found(domain(**strings)) == []
    assert warned(domain(**strings)) == []
    assert warned(domain(chassis={"asset": "a\x01b"})) == ["domain.chassis.asset"]


@report("B27")
def test_an_empty_cd_drive_needs_the_gate_and_an_empty_disk_is_an_error(reported: str) -> None:
    drive = merged(devices(disks=[{"name": "cd", "cdrom": {"bus": "sata"}}]), {"volumes": []})
    assert found(drive, gates=("DeclarativeHotplugVolumes",)) == []
    assert found(drive, off=("DeclarativeHotplugVolumes",)) == ["domain.devices.disks[0].name"]
    for target in ("disk", "lun"):
        gone = merged(devices(disks=[{"name": "gone", target: {"bus": "scsi"}}]), {"volumes": []})
        assert found(gone, gates=("DeclarativeHotplugVolumes",)) == ["domain.devices.disks[0].name"]


@report("B34")
def test_kernel_arguments_need_a_kernel(reported: str) -> None:
    container = {"image": "i", "kernelPath": "/k"}
    arguments = 'console=ttyS0 a="b&c"'
    assert found(domain(firmware={"kernelBoot": {"kernelArgs": arguments, "container": container}})) == []
    assert found(domain(firmware={"kernelBoot": {"kernelArgs": "x"}})) != []


@report("B36")
@pytest.mark.parametrize(
    ("asked", "on"),
    [
        ({"relaxed": {}}, {"relaxed"}),
        ({"synic": {}}, {"synic", "vpindex"}),
        ({"evmcs": {}}, {"evmcs", "vapic"}),
    ],
    ids=["relaxed", "synic", "evmcs"],
)
def test_hyperv_features_bring_those_that_they_need(
    reported: str, asked: dict[str, Any], on: set[str]
) -> None:
    defaulted = kvnode.apply_defaults(vmi(domain(features={"hyperv": asked})), "amd64")
    spec = defaulted["spec"]["domain"]
    assert {name for name, state in spec["features"]["hyperv"].items() if state["enabled"]} == on
    vmx = {"name": "vmx", "policy": "require"}
    assert (vmx in (spec["cpu"].get("features") or [])) == ("evmcs" in asked)
    assert kvnode.validate(defaulted, "amd64") == []


@report("B36")
def test_hyperv_passthrough_that_says_nothing_is_answered(reported: str) -> None:
    given = vmi(domain(features={"hypervPassthrough": {}}))
    defaulted = kvnode.apply_defaults(given, "amd64")
    assert isinstance(kvnode.validate(defaulted, "amd64"), list)


@report("B37")
@pytest.mark.parametrize(
    ("disk_order", "interface_order", "valid"),
    [(2, 1, True), (1, 1, False), (0, 1, False), (1, 0, False), (1, None, True)],
)
def test_boot_orders_are_checked_over_disks_and_interfaces_together(
    reported: str, disk_order: int, interface_order: int | None, valid: bool
) -> None:
    interface = {"name": "default", "masquerade": {}}
    if interface_order is not None:
        interface["bootOrder"] = interface_order  # type: ignore[assignment]
    drive = {"name": "root", "disk": {"bus": "virtio"}, "bootOrder": disk_order}
    assert (found(devices(disks=[drive], interfaces=[interface])) == []) == valid


@report("B12")
@pytest.mark.parametrize("capacity", ["7G", "1Mi"])
def test_a_capacity_that_is_no_multiple_of_a_mebibyte_is_valid(reported: str, capacity: str) -> None:
    assert found(volume(emptyDisk={"capacity": capacity})) == []
