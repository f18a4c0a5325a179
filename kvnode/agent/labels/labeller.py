"""The node's labels, and the patch that brings a node to them (``node-labeller/node_labeller.go:214-385``)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from kvnode.agent.labels.capabilities import Hypervisor

FEATURE = "cpu-feature.node.kubevirt.io/"
MODEL = "cpu-model.node.kubevirt.io/"
MIGRATION_MODEL = "cpu-model-migration.node.kubevirt.io/"
TIMER = "cpu-timer.node.kubevirt.io/"
HYPERV = "hyperv.node.kubevirt.io/"
VENDOR = "cpu-vendor.node.kubevirt.io/"
MACHINE = "machine-type.node.kubevirt.io/"
HOST_MODEL = "host-model-cpu.node.kubevirt.io/"
HOST_MODEL_FEATURE = "host-model-required-features.node.kubevirt.io/"
OBSOLETE_HOST_MODEL = "node-labeller.kubevirt.io/obsolete-host-model"
REALTIME = "kubevirt.io/realtime"
LAUNCH_SECURITY = "kubevirt.io/"
ARCHITECTURE = "kubevirt.io/vm-arch-"
SKIP_ANNOTATION = "node-labeller.kubevirt.io/skip-node"

OWNED = (
    FEATURE,
    MODEL,
    MIGRATION_MODEL,
    TIMER,
    HYPERV,
    REALTIME,
    "kubevirt.io/sev",
    "kubevirt.io/tdx",
    HOST_MODEL,
    HOST_MODEL_FEATURE,
    OBSOLETE_HOST_MODEL,
    MACHINE,
    ARCHITECTURE,
)
"""Beginnings of labels that are removed when they are not wanted any more.

The vendor's and Secure Execution's are not among them: once given, they stay.
"""

OBSOLETE_MODELS = frozenset(
    name + version
    for name in (
        "486",
        "pentium",
        "pentium2",
        "pentium3",
        "pentiumpro",
        "coreduo",
        "n270",
        "core2duo",
        "Conroe",
        "athlon",
        "phenom",
        "qemu64",
        "qemu32",
        "kvm64",
        "kvm32",
        "Opteron_G1",
        "Opteron_G2",
    )
    for version in ("", "-v1")
)
"""Models that no VM gets, unless ``obsoleteCPUModels`` of the configuration says otherwise."""

UNLIMITED_REALTIME = "-1"


@dataclass(frozen=True, slots=True)
class Counter:
    """The CPU's timer, from libvirt's host capabilities."""

    name: str
    frequency: int
    """Hz."""
    scaling: bool


@dataclass(frozen=True, slots=True)
class NodeFacts:
    """What labels are made of, beside the hypervisor."""

    machines: tuple[str, ...] = ()
    """Machine types, from libvirt's host capabilities."""
    counter: Counter | None = None
    hyperv: tuple[str, ...] = ()
    """Hyper-V features that KVM has."""
    realtime_runtime: str = ""
    """``kernel.sched_rt_runtime_us``."""
    obsolete_models: frozenset[str] | None = OBSOLETE_MODELS
    """``obsoleteCPUModels`` of the configuration; None: set to null, so that no host model counts as obsolete."""
    cross_architecture: bool = False
    """Whether guests of other architectures are allowed."""


@dataclass(frozen=True, slots=True)
class Labelling:
    """What is to be done about a node."""

    labels: Mapping[str, str]
    """All labels that the node is to have; those of others are kept."""
    patch: list[dict[str, Any]] = field(default_factory=list)
    """JSON patch; empty when nothing is to change."""
    warning: str = ""
    """Message of the Event ``HostModelIsObsolete``, "" for none."""


def wanted_labels(hypervisor: Hypervisor, facts: NodeFacts) -> dict[str, str]:
    """The labels that this node's hypervisor earns it."""
    traits = hypervisor.traits
    names: list[str] = []
    if traits.has_features:
        names += [FEATURE + name for name in hypervisor.features]
    if traits.has_named_models:
        obsolete = OBSOLETE_MODELS if facts.obsolete_models is None else facts.obsolete_models
        names += [MODEL + name for name in hypervisor.usable_models if name not in obsolete]
        names += [MIGRATION_MODEL + name for name in hypervisor.known_models if name not in obsolete]
    names += [MACHINE + name for name in facts.machines]
    names += [HYPERV + name for name in facts.hyperv]
    if traits.has_host_model:
        names += [HOST_MODEL_FEATURE + name for name in hypervisor.host_model_features]
        names += [VENDOR + hypervisor.vendor, HOST_MODEL + hypervisor.host_model]
        if _has_obsolete_host_model(hypervisor, facts):
            names.append(OBSOLETE_HOST_MODEL)
    if facts.realtime_runtime.strip() == UNLIMITED_REALTIME:
        names.append(REALTIME)
    names += [LAUNCH_SECURITY + name for name in hypervisor.launch_security]
    if facts.cross_architecture:
        names += [ARCHITECTURE + name for name in (hypervisor.architecture, *hypervisor.emulated)]
    labels = dict.fromkeys(names, "true")
    if facts.counter is not None and facts.counter.name == "tsc":
        labels[TIMER + "tsc-frequency"] = str(facts.counter.frequency)
        labels[TIMER + "tsc-scalable"] = "true" if facts.counter.scaling else "false"
    return labels


def _has_obsolete_host_model(hypervisor: Hypervisor, facts: NodeFacts) -> bool:
    return hypervisor.host_model in (facts.obsolete_models or ())


def label_node(node: Mapping[str, Any], hypervisor: Hypervisor, facts: NodeFacts) -> Labelling:
    """What is to be done about the node's labels as they are now. ``node`` is not changed.

    A node with the annotation ``node-labeller.kubevirt.io/skip-node``, whatever its value, is left alone.
    """
    metadata = node.get("metadata") or {}
    present = dict(metadata.get("labels") or {})
    if SKIP_ANNOTATION in (metadata.get("annotations") or {}):
        return Labelling(present)
    labels = {name: value for name, value in present.items() if not name.startswith(OWNED)}
    labels |= wanted_labels(hypervisor, facts)
    warning = ""
    if hypervisor.traits.has_host_model and _has_obsolete_host_model(hypervisor, facts):
        warning = f"host-model is {hypervisor.host_model} on this node, which obsoleteCPUModels lists"
    if labels == present:
        return Labelling(labels, warning=warning)
    path = "/metadata/labels"
    if "labels" not in metadata:
        return Labelling(labels, [{"op": "add", "path": path, "value": labels}], warning)
    patch = [
        {"op": "test", "path": path, "value": present},
        {"op": "replace", "path": path, "value": labels},
    ]
    return Labelling(labels, patch, warning)
