"""Situations of CPUs and memory that users ran into, with the right domain for each. Test ids name the report."""

from __future__ import annotations

import xml.etree.ElementTree as ET
from typing import Any

import pytest

import kvnode
from tests.fast.helpers import (
    MINIMAL_CONTEXT,
    MINIMAL_VMI,
    domain,
    error_field,
    merged,
)
from tests.reports import report


def cores(*siblings: tuple[int, ...]) -> dict[str, Any]:
    """A NUMA cell with a core for each group of siblings."""
    return {"id": 0, "cpus": [{"id": cpu, "siblings": list(group)} for group in siblings for cpu in group]}


def pins(root: ET.Element, element: str, key: str) -> dict[str, str]:
    return {pin.get(key, ""): pin.attrib["cpuset"] for pin in root.findall(f"cputune/{element}")}


@report("B13")
def test_guest_threads_are_pinned_to_threads_of_one_host_core(reported: str) -> None:
    cpu = {"sockets": 1, "cores": 2, "threads": 2, "dedicatedCpuPlacement": True}
    root = domain(
        {"spec": {"domain": {"cpu": cpu}}},
        cpuSet=[3, 4, 11, 12],
        topology={"numa_cells": [cores((3, 11), (4, 12))]},
    )
    assert pins(root, "vcpupin", "vcpu") == {"0": "3", "1": "11", "2": "4", "3": "12"}


@report("B15")
def test_every_pin_is_one_of_the_pods_cpus_and_none_is_used_twice(reported: str) -> None:
    cpu = {"sockets": 2, "maxSockets": 8, "cores": 1, "threads": 1}
    cpu |= {"dedicatedCpuPlacement": True, "isolateEmulatorThread": True}
    root = domain(
        {
            "spec": {
                "domain": {
                    "cpu": cpu,
                    "ioThreadsPolicy": "supplementalPool",
                    "ioThreads": {"supplementalPoolThreadCount": 1},
                }
            }
        },
        cpuSet=[1, 2, 3, 4],
        topology={"numa_cells": [cores((1,), (2,), (3,), (4,))]},
    )
    assert pins(root, "vcpupin", "vcpu") == {"0": "1", "1": "2"}, (
        "sockets that are not plugged in have no pin"
    )
    assert pins(root, "iothreadpin", "iothread") == {"1": "3"}
    assert pins(root, "emulatorpin", "none") == {"": "4"}


@report("B16")
@pytest.mark.parametrize(
    ("vcpus", "annotated", "emulator"), [(4, True, "4,5"), (4, False, "4"), (3, True, "3")]
)
def test_the_emulator_takes_two_cpus_where_that_makes_the_number_even(
    reported: str, vcpus: int, annotated: bool, emulator: str
) -> None:
    annotations = {"alpha.kubevirt.io/EmulatorThreadCompleteToEvenParity": ""} if annotated else {}
    cpu = {"sockets": 1, "cores": vcpus, "dedicatedCpuPlacement": True, "isolateEmulatorThread": True}
    root = domain(
        {"metadata": {"annotations": annotations}, "spec": {"domain": {"cpu": cpu}}},
        cpuSet=list(range(6)),
        topology={"numa_cells": [cores(*((cpu,) for cpu in range(6)))]},
    )
    assert pins(root, "emulatorpin", "none") == {"": emulator}


@report("B16")
def test_dedicated_cpus_are_counted_from_the_limit_when_there_is_no_topology(reported: str) -> None:
    vmi = merged(
        MINIMAL_VMI,
        {
            "spec": {
                "domain": {
                    "cpu": {"dedicatedCpuPlacement": True, "isolateEmulatorThread": True},
                    "resources": {"limits": {"cpu": "2"}},
                }
            }
        },
    )
    for name in ("cores", "sockets", "threads"):
        del vmi["spec"]["domain"]["cpu"][name]
    context = merged(
        MINIMAL_CONTEXT, {"cpuSet": [0, 1, 2], "topology": {"numa_cells": [cores((0,), (1,), (2,))]}}
    )
    root = ET.fromstring(kvnode.convert(vmi, context))
    assert pins(root, "vcpupin", "vcpu") == {"0": "0", "1": "1"}
    assert pins(root, "emulatorpin", "none") == {"": "2"}


@report("B19")
def test_memory_is_dealt_out_to_the_numa_cells_in_whole_pages(reported: str) -> None:
    vmi = {
        "spec": {
            "domain": {
                "cpu": {"cores": 4, "dedicatedCpuPlacement": True, "numa": {"guestMappingPassthrough": {}}},
                "memory": {"guest": "1030Mi", "hugepages": {"pageSize": "2Mi"}},
            }
        }
    }
    idle = {"id": 1, "cpus": [{"id": 8, "siblings": [8]}]}  # no CPU of it is the pod's
    cells = [cores((0,), (1,)), idle, {**cores((4,), (5,)), "id": 2}]
    root = domain(vmi, cpuSet=[0, 1, 4, 5], topology={"numa_cells": cells})
    guest = root.findall("cpu/numa/cell")
    assert [(cell.get("id"), int(cell.attrib["memory"]) >> 20, cell.get("unit")) for cell in guest] == [
        ("0", 516, "b"),
        ("1", 514, "b"),
    ]
    memory = root.find("numatune/memory")
    assert memory is not None
    assert (memory.get("mode"), memory.get("nodeset")) == ("strict", "0,2")
    nodes = [
        tuple(node.get(key) for key in ("cellid", "mode", "nodeset"))
        for node in root.findall("numatune/memnode")
    ]
    assert nodes == [("0", "strict", "0"), ("1", "strict", "2")]
    pages = root.findall("memoryBacking/hugepages/page")
    assert [(page.get("size"), page.get("unit"), page.get("nodeset")) for page in pages] == [
        ("2097152", "b", "0"),
        ("2097152", "b", "1"),
    ]
    allocation = root.find("memoryBacking/allocation")
    assert allocation is not None
    assert allocation.get("mode") == "immediate"
    small = merged(vmi, {"spec": {"domain": {"memory": {"guest": "3Mi"}}}})
    assert (
        error_field(small, cpuSet=[0, 1, 4, 5], topology={"numa_cells": cells}) == "spec.domain.memory.guest"
    )
