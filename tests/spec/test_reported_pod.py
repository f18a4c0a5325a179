"""Situations that users ran into, with what the pod of their VM is to ask for. Test ids name the report."""

from __future__ import annotations

from typing import Any

import pytest

import kvnode
from kvnode.api.quantity import Quantity

MIB = 2**20


def report(*names: str) -> pytest.MarkDecorator:
    """Run a test once, with the report's number in its id."""
    return pytest.mark.parametrize("reported", names)


def resources(
    domain: dict[str, Any], config: dict[str, Any] | None = None, **annotations: str
) -> dict[str, dict[str, int]]:
    """Requests and limits of the launcher's container, in whole units."""
    vmi = {
        "apiVersion": "kubevirt.io/v1",
        "kind": "VirtualMachineInstance",
        "metadata": {"name": "t", "namespace": "ns1", "uid": "u", "annotations": annotations},
        "spec": {"domain": {"devices": {}, **domain}},
    }
    pod = kvnode.render_launcher_pod(kvnode.apply_defaults(vmi, "amd64", config), "amd64", config)
    compute = next(container for container in pod["spec"]["containers"] if container["name"] == "compute")
    return {
        side: {name: Quantity(text).value for name, text in compute["resources"][side].items()}
        for side in ("requests", "limits")
    }


@report("B01")
def test_memory_is_the_guest_s_and_the_overhead(reported: str) -> None:
    cpu = {"cores": 1, "sockets": 1, "threads": 1}
    found = resources({"cpu": cpu, "memory": {"guest": "64Gi"}})
    assert found["requests"]["memory"] == 64 * 2**30 + 268 * MIB


@report("B03")
def test_a_pod_with_dedicated_cpus_is_guaranteed(reported: str) -> None:
    found = resources({"cpu": {"cores": 4, "dedicatedCpuPlacement": True}, "memory": {"guest": "4Gi"}})
    assert found["requests"]["cpu"] == found["limits"]["cpu"] == 4
    assert found["requests"]["memory"] == found["limits"]["memory"]
    assert found["requests"]["memory"] == 4 * 2**30 + 392 * MIB


@report("B08")
@pytest.mark.parametrize("overcommit", [100, 130, 150])
def test_huge_pages_are_never_overcommitted(reported: str, overcommit: int) -> None:
    memory = {"guest": "3Gi", "hugepages": {"pageSize": "2Mi"}}
    found = resources({"memory": memory}, {"developerConfiguration": {"memoryOvercommit": overcommit}})
    assert found["requests"]["hugepages-2Mi"] == found["limits"]["hugepages-2Mi"] == 3 * 2**30
    assert found["requests"]["memory"] == 268 * MIB


@report("B15")
def test_vcpus_threads_of_the_pool_and_the_emulator_are_asked_for(reported: str) -> None:
    cpu = {"sockets": 2, "maxSockets": 8, "cores": 1, "threads": 1}
    cpu |= {"dedicatedCpuPlacement": True, "isolateEmulatorThread": True}
    pool = {"ioThreadsPolicy": "supplementalPool", "ioThreads": {"supplementalPoolThreadCount": 1}}
    found = resources({"cpu": cpu, "memory": {"guest": "1Gi"}, **pool})
    assert found["requests"]["cpu"] == found["limits"]["cpu"] == 4


@report("B16")
@pytest.mark.parametrize(("vcpus", "even", "cpus"), [(4, True, 6), (4, False, 5), (3, True, 4)])
def test_the_emulator_makes_the_number_of_cpus_even(reported: str, vcpus: int, even: bool, cpus: int) -> None:
    cpu = {"sockets": 1, "cores": vcpus, "dedicatedCpuPlacement": True, "isolateEmulatorThread": True}
    annotations = {"alpha.kubevirt.io/EmulatorThreadCompleteToEvenParity": ""} if even else {}
    found = resources({"cpu": cpu, "memory": {"guest": "1Gi"}}, **annotations)
    assert found["requests"]["cpu"] == found["limits"]["cpu"] == cpus


@report("B16")
def test_dedicated_cpus_come_from_the_limit(reported: str) -> None:
    cpu = {"dedicatedCpuPlacement": True, "isolateEmulatorThread": True}
    found = resources({"cpu": cpu, "memory": {"guest": "1Gi"}, "resources": {"limits": {"cpu": "2"}}})
    assert found["requests"]["cpu"] == found["limits"]["cpu"] == 3
