"""Which nodes a pod may go to: node selector and affinity (``nodeselectorrenderer.go``, ``template.go:195-283``)."""

from __future__ import annotations

import copy
from typing import Any

from kvnode.spec.pod.settings import Claim
from kvnode.spec.pod.source import PodSource
from kvnode.spec.pod.volumes import claim_fields

CPU_FEATURE = "cpu-feature.node.kubevirt.io/"
CPU_MODEL = "cpu-model.node.kubevirt.io/"
HYPERV = "hyperv.node.kubevirt.io/"
MACHINE_TYPE = "machine-type.node.kubevirt.io/"
OBSOLETE_HOST_MODEL = "node-labeller.kubevirt.io/obsolete-host-model"
RESERVATION_LABEL = "pr.kubevirt.io/"
TSC_FREQUENCY = "scheduling.node.kubevirt.io/tsc-frequency-"
VM_ARCHITECTURE = "kubevirt.io/vm-arch-"

_ARCHITECTURE = "kubernetes.io/arch"
_REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
_PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"
_HOST_MODELS = ("host-model", "host-passthrough")
_HYPERV_LABELS = (
    "vpindex",
    "runtime",
    "reset",
    "synic",
    "synictimer",
    "frequencies",
    "reenlightenment",
    "tlbflush",
    "ipi",
)
"""Enlightenments that need the kernel's help."""


def node_selector(source: PodSource) -> dict[str, str]:
    """Labels that the node must have: those that the VM's features need win over what anybody wrote."""
    architecture = source.spec.get("architecture", "")
    cross = source.config.gate("CrossArchitectureVirtualization") and bool(architecture)
    selector = {"kubevirt.io/schedulable": "true"}
    if architecture:
        selector[_ARCHITECTURE] = architecture.lower()
    selector |= source.config.node_selectors
    selector |= source.spec.get("nodeSelector", {})
    if cross:
        selector.pop(_ARCHITECTURE, None)
        selector[VM_ARCHITECTURE + architecture] = "true"
    needed = [*_cpu_labels(source), *_machine_labels(source), *_protection_labels(source)]
    return selector | dict.fromkeys(needed, "true")


def affinity(source: PodSource) -> dict[str, Any]:
    """The VMI's own affinity, with what its CPU, its architecture and its reserved disks add."""
    made: dict[str, Any] = copy.deepcopy(source.spec.get("affinity", {}))
    cpu = source.domain.get("cpu", {})
    if cpu.get("model") in (None, "", "host-model"):
        _reject_label(made, OBSOLETE_HOST_MODEL)
    for feature in cpu.get("features", ()):
        if feature.get("policy") == "forbid":
            _reject_label(made, CPU_FEATURE + feature.get("name", ""))
    terms = [_apart(label) for label in reservation_labels(source)]
    if terms:
        made.setdefault("podAntiAffinity", {}).setdefault(_REQUIRED, []).extend(terms)
    architecture = source.spec.get("architecture", "")
    if architecture and source.config.gate("CrossArchitectureVirtualization"):
        own = {"key": _ARCHITECTURE, "operator": "In", "values": [architecture.lower()]}
        term = {"weight": 100, "preference": {"matchExpressions": [own]}}
        made.setdefault("nodeAffinity", {}).setdefault(_PREFERRED, []).append(term)
    return made


def reservation_labels(source: PodSource) -> list[str]:
    """A label for each claim that a LUN with reservations lies on (``pkg/storage/reservation/pr.go``)."""
    claims = source.claims or {}
    volumes = {volume.get("name", ""): volume for volume in source.volumes}
    labels: dict[str, None] = {}
    for disk in source.devices.get("disks", ()):
        if not disk.get("lun", {}).get("reservation", False):
            continue
        named = claim_fields(volumes.get(disk.get("name", ""), {}))
        claim = claims.get(named[0], Claim(block=False)) if named else Claim(block=False)
        if claim.uid:
            labels[RESERVATION_LABEL + claim.uid] = None
    return list(labels)


def _cpu_labels(source: PodSource) -> list[str]:
    cpu = source.domain.get("cpu", {})
    labels = ["kubevirt.io/cpumanager"] if source.dedicated_cpus else []
    if source.config.gate("HypervStrictCheck"):
        labels += _hyperv_labels(source)
    model = cpu.get("model")
    if not model:
        return labels
    if model not in _HOST_MODELS:
        labels.append(CPU_MODEL + model)
    features = cpu.get("features", ())
    required = [feature for feature in features if feature.get("policy") in (None, "", "require")]
    return labels + [CPU_FEATURE + feature.get("name", "") for feature in required]


def _hyperv_labels(source: PodSource) -> list[str]:
    hyperv = source.domain.get("features", {}).get("hyperv", {})
    labels = [HYPERV + name for name in _HYPERV_LABELS if hyperv.get(name, {}).get("enabled", False)]
    if "evmcs" in hyperv and hyperv["evmcs"].get("enabled", True):
        labels.append("cpu-vendor.node.kubevirt.io/Intel")
    return labels


def _machine_labels(source: PodSource) -> list[str]:
    machine = source.status.get("machine", {}).get("type") or source.domain.get("machine", {}).get("type")
    labels = [MACHINE_TYPE + machine] if machine else []
    frequency = source.status.get("topologyHints", {}).get("tscFrequency", 0)
    if frequency > 0 and _needs_tsc_frequency(source):
        labels.append(f"{TSC_FREQUENCY}{frequency}")
    if "realtime" in source.domain.get("cpu", ()):
        labels.append("kubevirt.io/realtime")
    return labels


def _needs_tsc_frequency(source: PodSource) -> bool:
    """Whether the guest counts on a clock that never changes (``watch/topology/tsc.go:135``)."""
    features = source.domain.get("cpu", {}).get("features", ())
    invariant = any(f.get("name") == "invtsc" and f.get("policy") in ("require", "force") for f in features)
    hyperv = source.domain.get("features", {}).get("hyperv", {})
    return invariant or bool(hyperv.get("reenlightenment", {}).get("enabled", False))


def _protection_labels(source: PodSource) -> list[str]:
    security = source.domain.get("launchSecurity")
    if security is None:
        return []
    wanted = {
        "sev": "sev" in security or "snp" in security,
        "sev-es": security.get("sev", {}).get("policy", {}).get("encryptedState", False),
        "sev-snp": "snp" in security,
        "s390-pv": source.spec.get("architecture") == "s390x",
        "tdx": "tdx" in security,
    }
    return [f"kubevirt.io/{name}" for name, needed in wanted.items() if needed]


def _reject_label(made: dict[str, Any], label: str) -> None:
    """Keep the pod off nodes with a label: in every term, as one term that fits is enough for the scheduler."""
    requirement = {"key": label, "operator": "DoesNotExist"}
    required = made.setdefault("nodeAffinity", {}).setdefault(_REQUIRED, {"nodeSelectorTerms": [{}]})
    for term in required.get("nodeSelectorTerms", ()):
        term["matchExpressions"] = [*term.get("matchExpressions", ()), dict(requirement)]


def _apart(label: str) -> dict[str, Any]:
    """Not on a node where a pod with that label is."""
    selector = {"matchExpressions": [{"key": label, "operator": "Exists"}]}
    return {"labelSelector": selector, "topologyKey": "kubernetes.io/hostname"}
