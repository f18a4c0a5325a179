"""CPUs that compute requests."""

from __future__ import annotations

from typing import Any

import pytest

from kvnode.spec.pod import Surroundings
from tests.spec.pod.helpers import compute, gates, instance

EVEN = {"alpha.kubevirt.io/EmulatorThreadCompleteToEvenParity": ""}


def cpus(
    vmi: dict[str, Any], config: dict[str, Any] | None = None, **arguments: Any
) -> tuple[str | None, str | None]:
    """Request and limit."""
    resources = compute(vmi, config, **arguments)["resources"]
    return resources["requests"].get("cpu"), resources["limits"].get("cpu")


@pytest.mark.parametrize(
    ("cpu", "request_"),
    [
        ({"cores": 1}, "100m"),
        ({"cores": 2, "sockets": 0}, "200m"),
        ({"cores": 2, "threads": 5}, "1"),
        ({"sockets": 15}, "1500m"),
    ],
)
def test_a_tenth_of_each_vcpu(cpu: dict[str, int], request_: str) -> None:
    assert cpus(instance(cpu=cpu)) == (request_, None)


def test_without_a_topology_one_vcpu_counts() -> None:
    assert cpus(instance()) == ("100m", None)
    assert cpus(instance(cpu={})) == (None, None)


@pytest.mark.parametrize(
    ("ratio", "request_"), [(1, "4"), (3, "1333333334n"), (7, "571428572n"), (40, "100m")]
)
def test_another_part_of_each(ratio: int, request_: str) -> None:
    assert cpus(instance(cpu={"cores": 4}), gates(cpuAllocationRatio=ratio)) == (request_, None)


def test_io_threads_of_the_pool_count() -> None:
    vmi = instance(cpu={"cores": 2}, ioThreads={"supplementalPoolThreadCount": 3})
    assert cpus(vmi) == ("500m", None)


def test_own_amounts_win() -> None:
    resources = {"requests": {"cpu": "3"}, "limits": {"cpu": "5"}}
    surroundings = Surroundings(auto_cpu_limit=True)
    assert cpus(instance(cpu={"cores": 2}, resources=resources), surroundings=surroundings) == ("3", "5")


def test_a_quota_limits_to_whole_cpus() -> None:
    vmi = instance(cpu={"cores": 2}, ioThreads={"supplementalPoolThreadCount": 1})
    assert cpus(vmi, surroundings=Surroundings(auto_cpu_limit=True)) == ("300m", "3")


@pytest.mark.parametrize(
    ("vcpus", "pool", "annotations", "total"),
    [
        (4, 0, EVEN, "6"),
        (4, 0, {}, "5"),
        (3, 0, EVEN, "4"),
        (3, 0, {}, "4"),
        (4, 1, EVEN, "6"),
        (3, 1, EVEN, "6"),
    ],
)
def test_the_emulator_has_cpus_of_its_own(
    vcpus: int, pool: int, annotations: dict[str, str], total: str
) -> None:
    """With the annotation the total is even, so that whole cores can be given."""
    cpu = {"cores": vcpus, "dedicatedCpuPlacement": True, "isolateEmulatorThread": True}
    policy = {"ioThreadsPolicy": "supplementalPool", "ioThreads": {"supplementalPoolThreadCount": pool}}
    assert cpus(instance(cpu=cpu, annotations=annotations, **policy)) == (total, total)


@pytest.mark.parametrize("kinds", [("limits",), ("limits", "requests")])
def test_dedicated_cpus_without_a_topology_are_those_of_the_limit(kinds: tuple[str, ...]) -> None:
    cpu = {"dedicatedCpuPlacement": True, "isolateEmulatorThread": True}
    resources = {kind: {"cpu": "2"} for kind in kinds}
    request, limit = cpus(instance(cpu=cpu, resources=resources))
    assert limit == "3"
    assert request == ("3" if "requests" in kinds else None)


def test_dedicated_cpus_replace_other_amounts() -> None:
    cpu = {"cores": 2, "dedicatedCpuPlacement": True}
    assert cpus(instance(cpu=cpu, resources={"requests": {"cpu": "500m"}, "limits": {"cpu": "7"}})) == (
        "2",
        "2",
    )
