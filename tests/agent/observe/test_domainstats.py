"""Samples out of what launchers measured."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kvnode.agent.observe import domainstats as tables
from kvnode.agent.observe.domainstats import MOST, samples
from kvnode.virt.domain_json.shape import Struct
from kvnode.virt.payloads.stats import DOMAIN_STATS
from tests.agent.observe.build import FILES, STATS


def test_samples_in_base_units_and_only_what_was_measured() -> None:
    found = {(metric.name, *labels.values()): value for metric, value, labels in samples(STATS, FILES)}
    assert found == {
        ("cpu_usage_seconds_total",): 1.5,
        ("memory_resident_bytes",): 2048.0,
        ("vcpu_seconds_total", "0", "running"): 1.0,
        ("vcpu_wait_seconds_total", "0"): 0.0,
        ("network_receive_bytes_total", "default"): 5.0,
        ("network_traffic_bytes_total", "default", "rx"): 5.0,
        ("storage_read_times_seconds_total", "disk"): 1.0,
        ("node_cpu_affinity",): 3.0,
        ("filesystem_capacity_bytes", "vda1", "/", "ext4"): 9.0,
        ("filesystem_used_bytes", "vda1", "/", "ext4"): 3.0,
    }


@pytest.mark.parametrize(
    "stats",
    [
        {},
        {"Cpu": 3, "Vcpu": [1], "Net": {}, "Memory": {"RSSSet": True, "RSS": "x"}},
        {"Cpu": {"TimeSet": True, "Time": True}, "CPUMapSet": True, "CPUMap": 7},
        {"Vcpu": [{"State": [], "TimeSet": False, "Time": 1}]},
    ],
)
def test_a_launcher_may_answer_nonsense(stats: dict[str, Any]) -> None:
    assert samples(stats) == []


def test_a_state_that_is_none_is_unknown() -> None:
    states: tuple[Any, ...] = (7, {}, None, "1")
    for state in states:
        (found,) = samples({"Vcpu": [{"State": state, "TimeSet": True, "Time": 1}]})
        assert found[2]["state"] == "unknown"


def test_a_launcher_that_tells_of_too_much_is_cut_short() -> None:
    disks = [{"NameSet": True, "Name": str(n), "RdReqsSet": True, "RdReqs": 1} for n in range(2 * MOST)]
    assert len(samples({"Block": disks})) == MOST


SCALARS = st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=3)
NAMES = st.sampled_from(
    ["Cpu", "Vcpu", "Net", "Block", "Load", "CPUMap", "CPUMapSet", "Time", "TimeSet", "NameSet", "State"]
)
JSON = st.recursive(
    SCALARS, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(NAMES, inner, max_size=5)
)


@given(st.dictionaries(NAMES, JSON, max_size=6), st.lists(JSON, max_size=3))
def test_no_answer_is_more_than_samples_can_bear(stats: dict[str, Any], files: list[Any]) -> None:
    for _, value, labels in samples(stats, files):
        assert isinstance(value, int | float)
        assert all(isinstance(text, str) for text in labels.values())


@pytest.mark.parametrize(
    ("part", "metrics"),
    [
        ("Cpu", tables.CPU),
        ("Memory", tables.MEMORY),
        ("Load", tables.LOAD),
        ("Net", (*tables.NETWORK, *tables.TRAFFIC.values())),
        ("Block", tables.STORAGE),
        ("Vcpu", (*tables.VCPU, tables.VCPU_TIME)),
    ],
)
def test_every_field_is_one_that_launchers_send(part: str, metrics: tuple[tables.Metric, ...]) -> None:
    sent = DOMAIN_STATS.by_name[part].kind
    assert isinstance(sent, Struct)
    for metric in metrics:
        assert {metric.field, f"{metric.field}Set"} <= set(sent.by_name), metric
