"""What Prometheus is told, read as Prometheus' own client reads it."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kvnode.agent.observe.domainstats import Metric
from kvnode.agent.observe.exposition import Exposition
from kvnode.agent.observe.memorywatch import Measured
from kvnode.agent.observe.samples import Seen
from tests.agent.observe.build import HOSTILE, MIB, exposed, process, report, seen, source
from tests.agent.observe.reading import read, values

NAME = HOSTILE.replace("/", "")


VM = {"node": "node01", "namespace": "default", "name": "web"}


def labelled(name: str, **labels: str) -> tuple[str, frozenset[tuple[str, str]]]:
    return name, frozenset({**VM, **labels}.items())


def test_samples_of_a_vm_in_base_units() -> None:
    found = values(exposed([seen()], source()))
    assert found[labelled("kubevirt_vmi_cpu_usage_seconds_total")] == 1.5
    assert found[labelled("kubevirt_vmi_memory_resident_bytes")] == 2048
    assert found[labelled("kubevirt_vmi_vcpu_seconds_total", id="0", state="running")] == 1
    assert found[labelled("kubevirt_vmi_network_traffic_bytes_total", interface="default", type="rx")] == 5
    assert found[labelled("kubevirt_vmi_node_cpu_affinity")] == 3


def test_each_process_has_its_resident_its_proportional_and_its_requested_size() -> None:
    found = values(exposed([seen()], source()))
    qemu = {"role": "qemu", "pid": "7"}
    assert found[labelled("kubevirt_vmi_process_resident_bytes", **qemu)] == 100 * MIB
    assert found[labelled("kubevirt_vmi_process_proportional_bytes", **qemu)] == 90 * MIB
    assert found[labelled("kubevirt_vmi_process_requested_bytes", **qemu)] == 78 * MIB
    assert found[labelled("kubevirt_vmi_memory_overhead_used_bytes")] == 151 * MIB
    assert found[labelled("kubevirt_vmi_memory_overhead_requested_bytes")] == 268 * MIB
    assert found[labelled("kubevirt_vmi_memory_overhead_headroom_bytes")] == 117 * MIB
    assert found[labelled("kubevirt_vmi_memory_guest_resident_bytes")] == 640 * MIB


def test_of_the_agent_itself() -> None:
    found = values(exposed([], source(deprecated_machines=("pc-1.0",))))
    queue = frozenset({("name", "virt-handler-vm")})
    none: frozenset[tuple[str, str]] = frozenset()
    assert found["kubevirt_virt_handler_ready_status", none] == 1
    assert values(exposed([], source(ready=False)))["kubevirt_virt_handler_ready_status", none] == 0
    for name, value in (
        ("depth", 3),
        ("adds_total", 9),
        ("retries_total", 2),
        ("longest_running_processor_seconds", 1.5),
        ("unfinished_work_seconds", 2),
    ):
        assert found[f"kubevirt_workqueue_{name}", queue] == value
    machine = frozenset({("machine_type", "pc-1.0"), ("node", "node01")})
    assert found["kubevirt_node_deprecated_machine_types", machine] == 1
    assert found["process_resident_memory_bytes", none] > MIB
    assert found["process_cpu_seconds_total", none] > 0
    assert found["process_open_fds", none] > 2


def test_durations_are_histograms() -> None:
    text = exposed([], source())
    family = read(text)["kubevirt_workqueue_work_duration_seconds"]
    assert family.type == "histogram"  # type: ignore[attr-defined]
    found = values(text)
    queue = {"name": "virt-handler-vm"}
    name = "kubevirt_workqueue_work_duration_seconds"
    for bound, count in (("1e-08", 0), ("0.1", 1), ("1.0", 2), ("+Inf", 3)):
        assert found[f"{name}_bucket", frozenset({**queue, "le": bound}.items())] == count
    assert found[f"{name}_sum", frozenset(queue.items())] == 20.55
    assert found[f"{name}_count", frozenset(queue.items())] == 3


def test_counters_are_called_so_and_gauges_are_not() -> None:
    """Prometheus' rule, to which the reference makes an exception or two."""
    for name, family in read(exposed([seen()], source())).items():
        kind = family.type  # type: ignore[attr-defined]
        sampled = {sample.name for sample in family.samples}  # type: ignore[attr-defined]
        if kind == "histogram":
            continue
        assert kind in ("counter", "gauge"), name
        assert all(one.endswith("_total") == (kind == "counter") for one in sampled), name


def test_labels_of_the_vmi_come_along_and_cannot_take_the_place_of_its_name() -> None:
    one = seen(labels={"app.kubernetes.io/part-of": "shop", "name": "other"})
    found = values(exposed([one], source()))
    mine = {"kubernetes_vmi_label_app_kubernetes_io_part_of": "shop", "kubernetes_vmi_label_name": "other"}
    assert found[labelled("kubevirt_vmi_cpu_usage_seconds_total", **mine)] == 1.5


def test_hostile_names_stay_values() -> None:
    line = process(HOSTILE, 7, 1, 1)
    odd = (Metric("network_receive_bytes_total", "", 1, "counter", "x"), 1.0, {"interface": HOSTILE})
    one = Seen(f"default/{NAME}", "Running", "", (odd,), Measured(report(line), 0), labels={HOSTILE: HOSTILE})
    found = values(exposed([one], source()))
    names = [dict(labels) for name, labels in found if name == "kubevirt_vmi_network_receive_bytes_total"]
    assert [one["interface"] for one in names] == [HOSTILE]
    assert names[0]["name"] == NAME


def test_two_samples_of_the_same_labels_are_one() -> None:
    """Two interfaces of one name: Prometheus would refuse all of the node's metrics."""
    found = Exposition()
    found.add("a", "gauge", "As.", 1, {"x": "1"})
    found.add("a", "gauge", "As.", 2, {"x": "1"})
    assert str(found).count("a{") == 1
    assert values(str(found))["a", frozenset({("x", "1")})] == 1


@pytest.mark.parametrize("value", [float("inf"), float("nan"), -float("inf")])
def test_what_is_no_number_is_left_out(value: float) -> None:
    found = Exposition()
    found.add("a", "gauge", "As.", value, {})
    assert str(found) == ""


@given(
    st.dictionaries(st.sampled_from("abc"), st.text()),
    st.floats(allow_nan=False, allow_infinity=False) | st.integers(-(2**70), 2**70),
)
def test_whatever_is_exposed_is_read_again(labels: dict[str, str], value: float) -> None:
    found = Exposition()
    found.add("a_total", "counter", "As.", value, labels)
    text = bytes(found).decode()
    ((_, got),) = values(text).items()
    assert got == float(value)
    assert {name for (name, _) in values(text)} == {"a_total"}
    assert len(re.findall(r"^a_total", text, re.MULTILINE)) == 1


def test_half_a_pair_of_utf_16_is_no_end_of_the_page() -> None:
    found = Exposition()
    found.add("a", "gauge", "As.", 1, {"x": "\ud800"})
    assert bytes(found) == b'# HELP a As.\n# TYPE a gauge\na{x="?"} 1\n'
