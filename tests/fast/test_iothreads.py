"""I/O threads: how many, and which of them serves a disk."""

from __future__ import annotations

from typing import Any

import pytest

from tests.fast.helpers import devices, domain, error_field, merged


def vmi(dedicated: list[bool], *, bus: Any = "virtio", **of_domain: Any) -> dict[str, Any]:
    disks = [
        {"name": f"d{i}", "disk": {"bus": bus}, "dedicatedIOThread": own} for i, own in enumerate(dedicated)
    ]
    volumes = [{"name": disk["name"], "emptyDisk": {}} for disk in disks]
    return merged(devices(disks=disks), {"spec": {"volumes": volumes, "domain": of_domain}})


def threads(fragment: dict[str, Any]) -> tuple[str | None, list[str | None]]:
    """The number of threads, and the thread of each disk."""
    root = domain(fragment)
    return root.findtext("iothreads"), [d.get("iothread") for d in root.findall("devices/disk/driver")]


def test_no_threads_unless_asked_for() -> None:
    assert threads(vmi([False, False])) == (None, [None, None])


def test_a_dedicated_thread_leaves_one_for_the_others() -> None:
    assert threads(vmi([False, True, False])) == ("2", ["1", "2", "1"])


def test_shared_is_one_thread() -> None:
    assert threads(vmi([False, False], ioThreadsPolicy="shared")) == ("1", ["1", "1"])


@pytest.mark.parametrize(("cpu", "most"), [("1", 2), ("1500m", 4), (2, 4)])
def test_auto_makes_two_threads_a_cpu_at_most(cpu: str | int, most: int) -> None:
    fragment = vmi([False] * 5, ioThreadsPolicy="auto", resources={"requests": {"cpu": cpu}})
    count, disks = threads(fragment)
    assert count == str(most)
    assert disks == [str(i % most + 1) for i in range(5)]


def test_dedicated_threads_come_after_the_shared_ones() -> None:
    resources = {"requests": {"cpu": "2"}}
    fragment = vmi([True, False, True, False, False], ioThreadsPolicy="auto", resources=resources)
    assert threads(fragment) == ("4", ["3", "1", "4", "2", "1"])


def test_auto_beside_an_isolated_emulator_is_one_thread() -> None:
    cpu = {"dedicatedCpuPlacement": True, "isolateEmulatorThread": True}
    fragment = vmi([False, False], ioThreadsPolicy="auto", resources={"requests": {"cpu": "4"}}, cpu=cpu)
    host = {
        "cpuSet": [0, 1, 2, 3],
        "topology": {"numa_cells": [{"id": 0, "cpus": [{"id": n, "siblings": [n]} for n in range(4)]}]},
    }
    assert domain(fragment, **host).findtext("iothreads") == "1"


def test_a_pool_serves_every_virtio_disk() -> None:
    pool = {"ioThreadsPolicy": "supplementalPool", "ioThreads": {"supplementalPoolThreadCount": 2}}
    root = domain(vmi([False, True], **pool))
    assert root.findtext("iothreads") == "2"
    drivers = root.findall("devices/disk/driver")
    assert [[t.get("id") for t in d.findall("iothreads/iothread")] for d in drivers] == [["1", "2"]] * 2
    assert [d.get("iothread") for d in drivers] == [None, None]


def test_only_virtio_disks_have_a_thread() -> None:
    assert threads(vmi([True, False], bus="sata", ioThreadsPolicy="auto")) == ("2", [None, None])


@pytest.mark.parametrize(
    "pool", [{}, {"supplementalPoolThreadCount": 4_000_000_000}, {"supplementalPoolThreadCount": "2"}]
)
def test_a_pool_needs_a_sane_size(pool: dict[str, Any]) -> None:
    field = error_field(vmi([False], ioThreadsPolicy="supplementalPool", ioThreads=pool))
    assert field == "spec.domain.ioThreads.supplementalPoolThreadCount"


def test_a_pool_needs_a_size_at_all() -> None:
    assert error_field(vmi([False], ioThreadsPolicy="supplementalPool")) == "spec.domain.ioThreads"
