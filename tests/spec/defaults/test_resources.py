"""CPU request, guest memory and CPU topology."""

from __future__ import annotations

from typing import Any

import pytest

from kvnode.spec.config import ClusterConfig
from kvnode.spec.defaults.resources import default_cpu_request, default_cpu_topology, default_guest_memory


def domain(requests: Any = None, limits: Any = None, **members: Any) -> dict[str, Any]:
    resources = {name: amounts for name, amounts in (("requests", requests), ("limits", limits)) if amounts}
    return {"resources": resources, "devices": {}, **members}


@pytest.mark.parametrize(
    ("made", "requested"),
    [
        (domain(limits={"cpu": "2"}), "2"),
        (domain(limits={"cpu": "2"}, requests={"cpu": "0"}), "2"),
        (domain(limits={"cpu": "2"}, requests={"cpu": "1"}), "1"),
        (domain(limits={"cpu": "0"}), None),
        (domain(), None),
    ],
)
def test_cpu_request_is_the_limit(made: dict[str, Any], requested: str | None) -> None:
    default_cpu_request(made, ClusterConfig())
    assert made["resources"].get("requests", {}).get("cpu") == requested


@pytest.mark.parametrize(
    ("cluster", "made", "requested"),
    [
        ("250m", domain(), "250m"),
        ("0.1", domain(), None),
        ("250m", domain(requests={"cpu": "1"}), "1"),
        ("250m", domain(cpu={"dedicatedCpuPlacement": True}), None),
    ],
)
def test_cpu_request_of_the_cluster(cluster: str, made: dict[str, Any], requested: str | None) -> None:
    default_cpu_request(made, ClusterConfig.from_mapping({"cpuRequest": cluster}))
    assert made["resources"].get("requests", {}).get("cpu") == requested


@pytest.mark.parametrize(
    ("made", "guest"),
    [
        (domain({"memory": "1Gi"}, {"memory": "2Gi"}), "1Gi"),
        (domain({"memory": "0"}, {"memory": "2Gi"}), "2Gi"),
        (domain(memory={"hugepages": {"pageSize": "2Mi"}}), "2Mi"),
        (domain({"memory": "1Gi"}, memory={"hugepages": {"pageSize": "2Mi"}}), "1Gi"),
        (domain({"memory": "1Gi"}, memory={"guest": "3Gi"}), "3Gi"),
        (domain(memory={"hugepages": {"pageSize": "big"}}), None),
        (domain(memory={"hugepages": {}}), None),
        (domain(), None),
    ],
)
def test_guest_memory(made: dict[str, Any], guest: str | None) -> None:
    default_guest_memory(made)
    assert made["memory"].get("guest") == guest


def test_b20_guest_memory_comes_out_of_the_limit_beside_huge_pages() -> None:
    made = domain(limits={"memory": "2Gi"}, memory={"hugepages": {"pageSize": "2Mi"}})
    default_guest_memory(made)
    assert made["memory"]["guest"] == "2Gi"


@pytest.mark.parametrize(
    ("made", "topology"),
    [
        (domain(), {"sockets": 1, "cores": 1, "threads": 1}),
        (domain({"cpu": "3"}, {"cpu": "4"}), {"sockets": 4, "cores": 1, "threads": 1}),
        (domain({"cpu": "2500m"}), {"sockets": 3, "cores": 1, "threads": 1}),
        (domain({"cpu": "8"}, cpu={"cores": 2}), {"cores": 2}),
        (domain(limits={"cpu": "0"}), {"cores": 1, "threads": 1}),
        (domain({"cpu": "-1"}), {"sockets": 2**32 - 1, "cores": 1, "threads": 1}),
    ],
)
def test_cpu_topology(made: dict[str, Any], topology: dict[str, int]) -> None:
    default_cpu_topology(made)
    assert made["cpu"] == topology
