"""``labels``: the node's labels from its capability files, Hyper-V's features, and the heartbeat."""

from __future__ import annotations

from typing import Any

from kvnode.agent import heartbeat
from kvnode.agent.errors import AgentError
from kvnode.agent.labels.capabilities import read_hypervisor
from kvnode.agent.labels.hyperv import CAPABILITIES, capabilities
from kvnode.agent.labels.labeller import Counter, NodeFacts, label_node, wanted_labels
from kvnode.spec.config import ClusterConfig
from tests.reference.common import Case, Outcome
from tests.reference.groups._agent import NOW


def run(case: Case) -> Outcome:
    """One row of any kind."""
    if case.data["case"] == "heartbeat":
        return _heartbeat(case.data)
    if case.data["case"] == "hyperv-msrs":
        return _hyperv(case.data)
    return _labeller(case.data)


def _gate(row: dict[str, Any], name: str) -> bool:
    gates = {"featureGates": row.get("feature_gates") or []}
    return ClusterConfig.from_mapping({"developerConfiguration": gates}).gate(name)


def _labeller(row: dict[str, Any]) -> Outcome:
    try:
        hypervisor = read_hypervisor(row["arch"], row["inputs"])
    except AgentError:
        return Outcome.of({"load_error": row.get("load_error", False)}, {"load_error": True})
    if row.get("load_error"):
        return Outcome.of({"load_error": True}, {"load_error": False})
    counter, obsolete = row["cpu_counter"], row["obsolete_cpu_models"]
    facts = NodeFacts(
        machines=tuple(row["machines"] or ()),
        counter=Counter(counter["name"], counter["frequency"], counter["scaling"] == "yes")
        if counter
        else None,
        hyperv=tuple(row["hyperv_capabilities"] or ()),
        realtime_runtime=row["sched_rt_runtime_us"],
        obsolete_models=None if obsolete is None else frozenset(obsolete),
        cross_architecture=_gate(row, "CrossArchitectureVirtualization"),
    )
    node = {"metadata": {"labels": row["node_labels_before"], "annotations": row["node_annotations"]}}
    done = label_node(node, hypervisor, facts)
    got = {
        "prepared_labels": wanted_labels(hypervisor, facts),
        "node_labels_after": done.labels,
        "patched": bool(done.patch),
        "events": ["event:Warning:HostModelIsObsolete"] if done.warning else None,
        "run_error": False,
        "host_model": hypervisor.host_model,
        "usable_models": hypervisor.usable_models,
        "known_models": hypervisor.known_models,
    }
    return Outcome.of({name: row[name] for name in got}, got)


def _hyperv(row: dict[str, Any]) -> Outcome:
    def check(_extension: int) -> int:
        raise OSError("not a KVM descriptor")

    got = {
        "hyperv_capabilities": capabilities(row["msrs"], check),
        "msr_by_capability": {one.name: one.msr for one in CAPABILITIES if one.msr is not None},
    }
    return Outcome.of({name: row[name] for name in got}, got)


def _heartbeat(row: dict[str, Any]) -> Outcome:
    gate = _gate(row, "CPUManager")
    pins = gate and heartbeat.has_static_cpu_manager(row["cpu_manager_state_file"])
    ready = row["device_plugins_initialized"] and not row["stopping"]
    patch = heartbeat.beat(NOW, ready=ready, pins_cpus=pins)["metadata"]
    annotations = {name: "<time>" for name, value in patch["annotations"].items() if value}
    got = {
        "cpu_manager_gate_effective": gate,
        "node_labels_after": {"foreign": "keep"} | patch["labels"],
        "node_annotations_after": annotations,
        "patch_type": heartbeat.CONTENT_TYPE,
    }
    return Outcome.of({name: row[name] for name in got}, got)
