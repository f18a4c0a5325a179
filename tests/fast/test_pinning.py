"""Dedicated CPUs: which host CPU each vCPU, I/O thread and the emulator gets."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import kvnode
from tests.fast.helpers import domain, error_field, merged


def cell(number: int, *cores: Iterable[int]) -> dict[str, Any]:
    """A NUMA cell of the host, a tuple of CPU numbers a core."""
    cpus = [{"id": cpu, "siblings": list(core)} for core in map(tuple, cores) for cpu in core]
    return {"id": number, "cpus": cpus}


# Two cells of four cores with two threads: CPU n and n + 8 share a core, cell 1 starts at CPU 4.
HOST = {
    "numa_cells": [
        cell(0, (0, 8), (1, 9), (2, 10), (3, 11)),
        cell(1, (4, 12), (5, 13), (6, 14), (7, 15)),
    ]
}


def vmi(cpu: Mapping[str, Any], **spec: Any) -> dict[str, Any]:
    """A VMI with dedicated CPUs; keywords are fields of its domain."""
    whole = {"cores": 1, "sockets": 1, "threads": 1, "dedicatedCpuPlacement": True} | dict(cpu)
    return {"spec": {"domain": {"cpu": whole} | spec}}


def pins(fragment: Mapping[str, Any], cpu_set: list[int], topology: Any = HOST) -> list[int]:
    """The host CPU of each vCPU."""
    root = domain(fragment, cpuSet=cpu_set, topology=topology)
    found = root.findall("cputune/vcpupin")
    assert [pin.get("vcpu") for pin in found] == [str(i) for i in range(len(found))]
    return [int(pin.attrib["cpuset"]) for pin in found]


def test_no_pins_without_dedicated_cpus() -> None:
    root = domain({}, cpuSet=[0, 1], topology=HOST)
    assert root.find("cputune") is None


def test_the_threads_of_a_guest_core_share_a_host_core() -> None:
    assert pins(vmi({"cores": 2, "threads": 2}), [0, 1, 8, 9]) == [0, 8, 1, 9]


def test_single_threaded_guest_cores_fill_host_core_after_host_core() -> None:
    assert pins(vmi({"cores": 3}), [0, 1, 8, 9]) == [0, 8, 1]


def test_whole_host_cores_go_before_fragments() -> None:
    # Of core 0 only one thread is ours: it is left until whole cores are used up.
    assert pins(vmi({"cores": 2, "threads": 2}), [0, 1, 9, 2, 10]) == [1, 9, 2, 10]


def test_fragments_of_one_cell_make_a_guest_core() -> None:
    assert pins(vmi({"cores": 2, "threads": 2}), [0, 1, 2, 10]) == [2, 10, 0, 1]


def test_what_a_guest_core_leaves_of_a_wide_host_core_is_a_fragment() -> None:
    host = {"numa_cells": [cell(0, (0, 1, 2), (3, 4, 5))]}
    assert pins(vmi({"cores": 3, "threads": 2}), [0, 1, 2, 3, 4, 5], host) == [0, 1, 3, 4, 2, 5]


def test_a_guest_core_crosses_cells_when_nothing_else_is_left() -> None:
    assert pins(vmi({"cores": 1, "threads": 2}), [0, 4]) == [0, 4]


def test_guest_cores_do_not_cross_cells_when_cells_are_mapped() -> None:
    fragment = vmi({"threads": 2, "numa": {"guestMappingPassthrough": {}}}, memory=HUGE)
    assert error_field(fragment, cpuSet=[0, 4], topology=HOST) == "spec.domain.cpu.numa"


def test_a_cpu_without_siblings_is_a_core() -> None:
    host = {"numa_cells": [{"cpus": [{}, {"id": 1}]}]}  # numbers that are 0 are absent on the wire
    assert pins(vmi({"cores": 2}), [0, 1], host) == [0, 1]


def test_cpus_outside_the_set_are_not_taken() -> None:
    assert pins(vmi({"cores": 2}), [3, 6]) == [3, 6]


@pytest.mark.parametrize(("cpu_set", "topology"), [([0], HOST), ([], HOST), ([0, 1, 2], {})])
def test_too_few_cpus(cpu_set: list[int], topology: Any) -> None:
    field = error_field(vmi({"cores": 3}), cpuSet=cpu_set, topology=topology)
    assert field == "spec.domain.cpu.dedicatedCpuPlacement"


def test_sockets_still_to_be_plugged_are_not_pinned() -> None:
    assert pins(vmi({"cores": 2, "maxSockets": 4}), [0, 1, 8, 9]) == [0, 8]


def test_the_emulator_takes_a_thread_after_the_vcpus() -> None:
    root = domain(vmi({"cores": 2, "isolateEmulatorThread": True}), cpuSet=[0, 1, 8, 9], topology=HOST)
    assert [pin.get("cpuset") for pin in root.iter("emulatorpin")] == ["1"]


def test_the_emulator_takes_fragments_first() -> None:
    fragment = vmi({"threads": 2, "isolateEmulatorThread": True})
    root = domain(fragment, cpuSet=[0, 1, 9, 2, 10], topology=HOST)
    assert [pin.get("cpuset") for pin in root.iter("emulatorpin")] == ["0"]


@pytest.mark.parametrize(("cores", "expected"), [(2, "1,9"), (3, "9")])
def test_an_even_number_of_vcpus_gets_two_emulator_cpus_on_request(cores: int, expected: str) -> None:
    annotation = {"metadata": {"annotations": {"alpha.kubevirt.io/EmulatorThreadCompleteToEvenParity": ""}}}
    fragment = merged(vmi({"cores": cores, "isolateEmulatorThread": True}), annotation)
    root = domain(fragment, cpuSet=[0, 1, 8, 9], topology=HOST)
    assert [pin.get("cpuset") for pin in root.iter("emulatorpin")] == [expected]


def test_no_cpu_left_for_the_emulator() -> None:
    fragment = vmi({"cores": 2, "isolateEmulatorThread": True})
    field = error_field(fragment, cpuSet=[0, 8], topology=HOST)
    assert field == "spec.domain.cpu.isolateEmulatorThread"


def io_thread_pins(fragment: Mapping[str, Any], cpu_set: list[int]) -> list[tuple[str | None, str | None]]:
    root = domain(fragment, cpuSet=cpu_set, topology=HOST)
    return [(pin.get("iothread"), pin.get("cpuset")) for pin in root.iter("iothreadpin")]


def with_disks(fragment: Mapping[str, Any], count: int) -> dict[str, Any]:
    names = [f"d{i}" for i in range(count)]
    disks = [{"name": name, "disk": {"bus": "virtio"}} for name in names]
    volumes = [{"name": name, "emptyDisk": {"capacity": "1Gi"}} for name in names]
    spec = {"domain": {"devices": {"disks": disks}}, "volumes": volumes}
    return merged(fragment, {"spec": spec})


def test_supplemental_io_threads_take_cpus_of_their_own_before_the_emulator() -> None:
    cpu = {"cores": 2, "isolateEmulatorThread": True}
    pool = {"ioThreadsPolicy": "supplementalPool", "ioThreads": {"supplementalPoolThreadCount": 2}}
    fragment = vmi(cpu, **pool)
    assert io_thread_pins(fragment, [0, 1, 2, 8, 9]) == [("1", "1"), ("2", "9")]
    root = domain(fragment, cpuSet=[0, 1, 2, 8, 9], topology=HOST)
    assert [pin.get("cpuset") for pin in root.iter("emulatorpin")] == ["2"]


@pytest.mark.parametrize("count", [3, 4294967295])
def test_no_cpu_left_for_a_supplemental_io_thread(count: int) -> None:
    pool = {"ioThreadsPolicy": "supplementalPool", "ioThreads": {"supplementalPoolThreadCount": count}}
    with pytest.raises(kvnode.ConversionError):
        domain(vmi({"cores": 2}, **pool), cpuSet=[0, 1, 8, 9], topology=HOST)


def test_a_shared_io_thread_may_run_where_any_vcpu_does() -> None:
    fragment = with_disks(vmi({"cores": 4}, ioThreadsPolicy="shared"), 2)
    assert io_thread_pins(fragment, [0, 1, 8, 9]) == [("1", "0,1,8,9")]


def test_fewer_io_threads_than_vcpus_share_the_cpus_evenly() -> None:
    resources = {"requests": {"cpu": "5", "memory": "64Mi"}}
    fragment = with_disks(vmi({"cores": 5}, ioThreadsPolicy="auto", resources=resources), 2)
    assert io_thread_pins(fragment, [0, 1, 2, 8, 9]) == [("1", "0,1,2"), ("2", "8,9")]


def test_more_io_threads_than_vcpus_go_round() -> None:
    resources = {"requests": {"cpu": "2", "memory": "64Mi"}}
    fragment = with_disks(vmi({"cores": 2}, ioThreadsPolicy="auto", resources=resources), 3)
    assert io_thread_pins(fragment, [0, 8]) == [("1", "8"), ("2", "0"), ("3", "8")]


def test_an_io_thread_runs_with_an_isolated_emulator() -> None:
    fragment = with_disks(vmi({"isolateEmulatorThread": True}, ioThreadsPolicy="auto"), 2)
    assert io_thread_pins(fragment, [0, 8]) == [("1", "8")]


def test_a_policy_without_disks_leaves_no_io_thread_to_pin() -> None:
    fragment = vmi({}, ioThreadsPolicy="shared")
    assert error_field(fragment, cpuSet=[0], topology=HOST) == "spec.domain.ioThreadsPolicy"


# --- NUMA cells handed through ------------------------------------------------------------------------------

HUGE = {"guest": "64Mi", "hugepages": {"pageSize": "2Mi"}}
PASSTHROUGH: dict[str, Any] = {"numa": {"guestMappingPassthrough": {}}}


def test_a_guest_cell_for_each_host_cell() -> None:
    memory = {"guest": "10Mi", "hugepages": {"pageSize": "2Mi"}}
    root = domain(vmi({"cores": 3} | PASSTHROUGH, memory=memory), cpuSet=[5, 0, 8], topology=HOST)
    cells = [dict(found.attrib) for found in root.findall("cpu/numa/cell")]
    page = 2 << 20
    assert cells == [  # five pages: the first cell has the odd one
        {"id": "0", "cpus": "0,1", "memory": str(3 * page), "unit": "b"},
        {"id": "1", "cpus": "2", "memory": str(2 * page), "unit": "b"},
    ]
    tune = root.find("numatune")
    assert tune is not None
    assert [dict(found.attrib) for found in tune] == [
        {"mode": "strict", "nodeset": "0,1"},
        {"cellid": "0", "mode": "strict", "nodeset": "0"},
        {"cellid": "1", "mode": "strict", "nodeset": "1"},
    ]
    pages = [dict(found.attrib) for found in root.findall("memoryBacking/hugepages/page")]
    assert pages == [{"size": str(page), "unit": "b", "nodeset": str(i)} for i in range(2)]
    allocation = root.find("memoryBacking/allocation")
    assert allocation is not None
    assert allocation.get("mode") == "immediate"
    assert root.find("memoryBacking/nosharepages") is None


def test_guest_cells_are_numbered_from_nought() -> None:
    root = domain(vmi(PASSTHROUGH, memory=HUGE), cpuSet=[5], topology=HOST)
    assert [found.get("id") for found in root.findall("cpu/numa/cell")] == ["0"]
    assert [found.get("nodeset") for found in root.findall("numatune/memnode")] == ["1"]


def test_a_realtime_guest_shares_no_pages() -> None:
    root = domain(vmi(PASSTHROUGH | {"realtime": {}}, memory=HUGE), cpuSet=[5], topology=HOST)
    assert root.find("memoryBacking/nosharepages") is not None


@pytest.mark.parametrize(
    ("memory", "field"),
    [
        ({"guest": "64Mi"}, "spec.domain.memory.hugepages"),
        ({"guest": "63Mi", "hugepages": {"pageSize": "2Mi"}}, "spec.domain.memory.guest"),
        ({"guest": "2Mi", "hugepages": {"pageSize": "2Mi"}}, "spec.domain.memory.guest"),
        ({"guest": "64Mi", "hugepages": {"pageSize": "0"}}, "spec.domain.memory.hugepages.pageSize"),
        ({"guest": "64Mi", "hugepages": {"pageSize": "big"}}, "spec.domain.memory.hugepages.pageSize"),
    ],
)
def test_memory_that_cannot_be_shared_out_in_pages(memory: dict[str, Any], field: str) -> None:
    fragment = vmi({"cores": 3} | PASSTHROUGH, memory=memory)
    assert error_field(fragment, cpuSet=[0, 8, 5], topology=HOST) == field


def test_a_sibling_that_no_cell_lists() -> None:
    host = {"numa_cells": [{"id": 0, "cpus": [{"id": 0, "siblings": [0, 7]}]}]}
    fragment = vmi({"threads": 2} | PASSTHROUGH, memory=HUGE)
    assert error_field(fragment, cpuSet=[0, 7], topology=host) == "context.topology"


# --- any host -----------------------------------------------------------------------------------------------


@given(
    widths=st.lists(st.lists(st.integers(1, 4), min_size=1, max_size=4), min_size=1, max_size=3),
    left_out=st.sets(st.integers(0, 47)),
    cores=st.integers(1, 6),
)
def test_each_vcpu_has_a_cpu_of_its_own(widths: list[list[int]], left_out: set[int], cores: int) -> None:
    number = iter(range(48))
    cells = [cell(i, *[[next(number) for _ in range(n)] for n in cell_widths])
             for i, cell_widths in enumerate(widths)]  # fmt: skip
    ours = [cpu["id"] for one in cells for cpu in one["cpus"] if cpu["id"] not in left_out]
    fragment = vmi({"cores": cores})
    if len(ours) < cores:
        assert error_field(fragment, cpuSet=ours, topology={"numa_cells": cells}).endswith(
            "dedicatedCpuPlacement"
        )
        return
    found = pins(fragment, ours, {"numa_cells": cells})
    assert len(found) == len(set(found)) == cores
    assert set(found) <= set(ours)
