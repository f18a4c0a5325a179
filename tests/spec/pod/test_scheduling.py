"""Which nodes a pod may go to."""

from __future__ import annotations

from typing import Any

import pytest

from kvnode.spec.pod import Claim
from tests.spec.pod.helpers import gates, instance, pod

BASE = {"kubevirt.io/schedulable": "true"}
CPU = {"cpu": {"model": "host-passthrough"}}
OBSOLETE = {"key": "node-labeller.kubevirt.io/obsolete-host-model", "operator": "DoesNotExist"}
REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"


def selector(vmi: dict[str, Any], config: dict[str, Any] | None = None) -> dict[str, str]:
    """The node selector, without what every pod has."""
    made: dict[str, str] = pod(vmi, config)["spec"]["nodeSelector"]
    assert made["kubevirt.io/schedulable"] == "true"
    return {key: value for key, value in made.items() if key not in BASE}


# --- node selector ----------------------------------------------------------------------------------


def test_the_vms_selector_wins_over_the_clusters() -> None:
    vmi = instance(architecture="arm64", nodeSelector={"zone": "b", "kubernetes.io/arch": "mine"})
    config = gates(nodeSelectors={"zone": "a", "rack": "1"})
    assert selector(vmi, config) == {"kubernetes.io/arch": "mine", "zone": "b", "rack": "1"}


@pytest.mark.parametrize(
    ("spec", "labels"),
    [
        ({"architecture": "S390X"}, set()),
        ({"cpu": {"dedicatedCpuPlacement": True}}, {"kubevirt.io/cpumanager"}),
        ({"cpu": {"realtime": {}}}, {"kubevirt.io/realtime"}),
        ({"cpu": {"model": "Nehalem"}}, {"cpu-model.node.kubevirt.io/Nehalem"}),
        ({"cpu": {"model": "host-model"}}, set()),
        ({"machine": {"type": "q35"}}, {"machine-type.node.kubevirt.io/q35"}),
        (
            {"machine": {"type": "q35"}, "status": {"machine": {"type": "pc-q35-9.0"}}},
            {"machine-type.node.kubevirt.io/pc-q35-9.0"},
        ),
        ({"launchSecurity": {"sev": {}}}, {"kubevirt.io/sev"}),
        (
            {"launchSecurity": {"sev": {"policy": {"encryptedState": True}}}},
            {"kubevirt.io/sev", "kubevirt.io/sev-es"},
        ),
        ({"launchSecurity": {"snp": {}}}, {"kubevirt.io/sev", "kubevirt.io/sev-snp"}),
        ({"launchSecurity": {"tdx": {}}}, {"kubevirt.io/tdx"}),
        ({"launchSecurity": {}, "architecture": "s390x"}, {"kubevirt.io/s390-pv"}),
    ],
)
def test_labels_that_features_need(spec: dict[str, Any], labels: set[str]) -> None:
    found = selector(instance(**spec))
    assert found.pop("kubernetes.io/arch", "").lower() == spec.get("architecture", "").lower()
    assert found == dict.fromkeys(labels, "true")


def test_cpu_features_count_with_a_model_alone() -> None:
    features = [
        {"name": "a"},
        {"name": "b", "policy": "require"},
        {"name": "c", "policy": "optional"},
        {"name": "d", "policy": "force"},
    ]
    wanted = {"cpu-feature.node.kubevirt.io/a": "true", "cpu-feature.node.kubevirt.io/b": "true"}
    assert selector(instance(cpu={"model": "host-passthrough", "features": features})) == wanted
    assert selector(instance(cpu={"features": features})) == {}


@pytest.mark.parametrize(
    ("spec", "hertz", "there"),
    [
        ({"cpu": {"features": [{"name": "invtsc", "policy": "require"}]}}, 2500, True),
        ({"cpu": {"features": [{"name": "invtsc"}]}}, 2500, False),
        ({"features": {"hyperv": {"reenlightenment": {"enabled": True}}}}, 2500, True),
        ({"features": {"hyperv": {"reenlightenment": {"enabled": True}}}}, 0, False),
        ({}, 2500, False),
    ],
)
def test_a_clock_that_must_not_change(spec: dict[str, Any], hertz: int, there: bool) -> None:
    vmi = instance(status={"topologyHints": {"tscFrequency": hertz}}, **spec)
    assert (f"scheduling.node.kubevirt.io/tsc-frequency-{hertz}" in selector(vmi)) == there


def test_hyperv_counts_where_it_is_checked() -> None:
    hyperv = {
        "vpindex": {"enabled": True},
        "synic": {"enabled": False},
        "evmcs": {},
        "vapic": {"enabled": True},
    }
    vmi = instance(features={"hyperv": hyperv})
    assert selector(vmi) == {}
    assert set(selector(vmi, gates("HypervStrictCheck"))) == {
        "hyperv.node.kubevirt.io/vpindex",
        "cpu-vendor.node.kubevirt.io/Intel",
    }


def test_another_architectures_nodes_will_do() -> None:
    vmi = instance(architecture="arm64", **CPU)
    spec = pod(vmi, gates("CrossArchitectureVirtualization"))["spec"]
    assert spec["nodeSelector"] == {**BASE, "kubevirt.io/vm-arch-arm64": "true"}
    (term,) = spec["affinity"]["nodeAffinity"]["preferredDuringSchedulingIgnoredDuringExecution"]
    assert term["weight"] == 100
    assert term["preference"]["matchExpressions"][0]["values"] == ["arm64"]


# --- affinity ---------------------------------------------------------------------------------------


def test_no_affinity_where_nothing_asks_for_any() -> None:
    assert "affinity" not in pod(instance(**CPU))["spec"]


@pytest.mark.parametrize("cpu", [{}, {"model": "host-model"}])
def test_nodes_with_an_obsolete_model_are_avoided(cpu: dict[str, str]) -> None:
    terms = pod(instance(cpu=cpu))["spec"]["affinity"]["nodeAffinity"][REQUIRED]["nodeSelectorTerms"]
    assert terms == [{"matchExpressions": [OBSOLETE]}]


def test_every_term_of_the_vm_is_narrowed() -> None:
    own = [{"matchExpressions": [{"key": "a", "operator": "Exists"}]}, {"matchFields": []}]
    affinity = {"nodeAffinity": {REQUIRED: {"nodeSelectorTerms": own}}, "podAffinity": {}}
    made = pod(instance(affinity=affinity))["spec"]["affinity"]
    terms = made["nodeAffinity"][REQUIRED]["nodeSelectorTerms"]
    assert [term["matchExpressions"][-1] for term in terms] == [OBSOLETE, OBSOLETE]
    assert terms[0]["matchExpressions"][0]["key"] == "a"
    assert made["podAffinity"] == {}


def test_a_preference_of_the_vm_stays() -> None:
    affinity = {"nodeAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": []}}
    made = pod(instance(affinity=affinity))["spec"]["affinity"]["nodeAffinity"]
    assert made["preferredDuringSchedulingIgnoredDuringExecution"] == []
    assert made[REQUIRED]["nodeSelectorTerms"] == [{"matchExpressions": [OBSOLETE]}]


def test_forbidden_features_are_avoided() -> None:
    features = [{"name": "x", "policy": "forbid"}, {"name": "y", "policy": "disable"}]
    vmi = instance(cpu={"model": "host-passthrough", "features": features})
    terms = pod(vmi)["spec"]["affinity"]["nodeAffinity"][REQUIRED]["nodeSelectorTerms"]
    assert terms == [
        {"matchExpressions": [{"key": "cpu-feature.node.kubevirt.io/x", "operator": "DoesNotExist"}]}
    ]


def test_pods_that_reserve_a_disk_are_kept_apart() -> None:
    vmi = instance(
        devices={"disks": [{"name": "d", "lun": {"reservation": True}}, {"name": "e", "lun": {}}]},
        volumes=[
            {"name": "d", "persistentVolumeClaim": {"claimName": "c"}},
            {"name": "e", "persistentVolumeClaim": {"claimName": "o"}},
        ],
        **CPU,
    )
    made = pod(vmi, pvcs={"c": Claim(block=True, uid="p-1"), "o": Claim(block=True, uid="p-2")})
    assert made["metadata"]["labels"]["pr.kubevirt.io/p-1"] == ""
    assert "pr.kubevirt.io/p-2" not in made["metadata"]["labels"]
    (term,) = made["spec"]["affinity"]["podAntiAffinity"][REQUIRED]
    assert term["topologyKey"] == "kubernetes.io/hostname"
    assert term["labelSelector"]["matchExpressions"] == [{"key": "pr.kubevirt.io/p-1", "operator": "Exists"}]
