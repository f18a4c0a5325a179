"""Room for CPUs and memory to be plugged in."""

from __future__ import annotations

from typing import Any

import pytest

from kvnode.spec.config import ClusterConfig
from kvnode.spec.defaults.hotplug import prepare_hotplug


def prepared(cpu: Any = None, memory: Any = None, config: Any = None, **members: Any) -> dict[str, Any]:
    topology = {"sockets": 1, "cores": 1, "threads": 1}
    domain = {"cpu": topology if cpu is None else cpu, "memory": memory or {}, **members}
    spec = {"architecture": "amd64", "domain": domain}
    prepare_hotplug(spec, ClusterConfig.from_mapping({"liveUpdateConfiguration": config or {}}))
    return domain


@pytest.mark.parametrize(
    ("cpu", "most"),
    [
        ({"sockets": 2, "cores": 1, "threads": 1}, 8),
        ({"sockets": 2, "cores": 1, "threads": 1, "maxSockets": 3}, 3),
        ({"sockets": 4, "cores": 64, "threads": 1}, 8),
        ({"sockets": 1, "cores": 600, "threads": 1}, 1),
        ({"sockets": 129, "cores": 2, "threads": 2}, 129),
        ({"cores": 2, "threads": 1}, None),
        ({"sockets": 2, "cores": 2}, 8),
        ({"sockets": 65536, "cores": 65536, "threads": 65536}, 2**18),
    ],
)
def test_sockets_to_grow_to(cpu: dict[str, int], most: int | None) -> None:
    assert prepared(dict(cpu))["cpu"].get("maxSockets") == most


@pytest.mark.parametrize(("cluster", "sockets", "most"), [(16, 2, 16), (4, 2, 4), (2, 4, 4), (0, 2, 8)])
def test_b18_the_cluster_s_most_sockets_never_shrink_a_vm(cluster: int, sockets: int, most: int) -> None:
    cpu = {"sockets": sockets, "cores": 1, "threads": 1}
    assert prepared(cpu, config={"maxCpuSockets": cluster})["cpu"]["maxSockets"] == most


@pytest.mark.parametrize(
    ("memory", "most"),
    [
        ({"guest": "1Gi"}, "4Gi"),
        ({"guest": "1536Mi"}, "6Gi"),
        ({"guest": "1Gi", "maxGuest": "1Gi"}, "1Gi"),
        ({"guest": "1022Mi"}, None),
        ({"guest": "1025Mi"}, None),
        ({"guest": "2147483649"}, None),
        ({"guest": "1536Mi", "hugepages": {"pageSize": "1Gi"}}, None),
        ({"guest": "2Gi", "hugepages": {"pageSize": "1Gi"}}, "8Gi"),
        ({"guest": "1536Mi", "hugepages": {"pageSize": "2Mi"}}, "6Gi"),
        ({"guest": "4Ei"}, None),
        ({}, None),
    ],
)
def test_memory_to_grow_to(memory: dict[str, Any], most: str | None) -> None:
    assert prepared(memory=dict(memory))["memory"].get("maxGuest") == most


@pytest.mark.parametrize(
    ("cluster", "most"), [("8Gi", "8Gi"), ("2Gi", "2Gi"), ("1Gi", None), ("8193Mi", None)]
)
def test_memory_that_the_cluster_allows(cluster: str, most: str | None) -> None:
    assert prepared(memory={"guest": "2Gi"}, config={"maxGuest": cluster})["memory"].get("maxGuest") == most


@pytest.mark.parametrize(
    "members",
    [
        {"launchSecurity": {}},
        {"cpu": {"sockets": 1, "realtime": {}}},
        {"cpu": {"sockets": 1, "numa": {"guestMappingPassthrough": {}}}},
    ],
)
def test_vms_that_take_no_memory(members: dict[str, Any]) -> None:
    assert "maxGuest" not in prepared(memory={"guest": "2Gi"}, **members)["memory"]


@pytest.mark.parametrize(("architecture", "most"), [("amd64", "8Gi"), ("s390x", None), ("riscv64", None)])
def test_only_amd64_takes_memory(architecture: str, most: str | None) -> None:
    domain: dict[str, Any] = {"cpu": {"sockets": 1}, "memory": {"guest": "2Gi"}}
    prepare_hotplug({"architecture": architecture, "domain": domain}, ClusterConfig())
    assert domain["memory"].get("maxGuest") == most


def test_the_cluster_s_most_memory_is_nothing_without_guest_memory() -> None:
    assert prepared(memory={}, config={"maxGuest": "8Gi"})["memory"] == {}


@pytest.mark.parametrize(("ratio", "most"), [(2, "4Gi"), (1, "2Gi"), (0, "8Gi")])
def test_the_ratio_is_the_cluster_s(ratio: int, most: str) -> None:
    made = prepared(memory={"guest": "2Gi"}, config={"maxHotplugRatio": ratio})
    assert made["memory"]["maxGuest"] == most
    assert made["cpu"]["maxSockets"] == (ratio or 4)


def test_an_empty_numa_section_does_no_harm() -> None:
    assert prepared({"sockets": 1, "numa": {}}, {"guest": "2Gi"})["memory"]["maxGuest"] == "8Gi"
