"""Is a VirtualMachineInstance one that KubeVirt v1.9 admits, and one that its hypervisor takes?

`validate` holds the rules of KubeVirt's admission (`vmi-create-admitter.go` and what it calls), a file for
each section of the spec. `warnings` is for what those rules let through and libvirt or QEMU then do not.
Both want a defaulted VMI, as the admission does, but take any JSON.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from kvnode.spec.cause import NOT_SUPPORTED, TYPE_INVALID, Cause, kind, shown
from kvnode.spec.config import ClusterConfig
from kvnode.spec.validation import (
    claims,
    cpu,
    devices,
    disks,
    features,
    firmware,
    grace,
    hypervisor,
    instance,
    interfaces,
    memory,
    networks,
    scheduling,
    security,
    volumes,
)
from kvnode.spec.validation.review import Review
from kvnode.spec.validation.schema import SchemaReader

__all__ = ["validate", "warnings"]

_KIND = "VirtualMachineInstance"
_API_VERSIONS = ("kubevirt.io/v1", "kubevirt.io/v1alpha3")

RULES = (
    *instance.RULES,
    *memory.RULES,
    *cpu.RULES,
    *firmware.RULES,
    *features.RULES,
    *devices.RULES,
    *disks.RULES,
    *volumes.RULES,
    *networks.RULES,
    *interfaces.RULES,
    *claims.RULES,
    *grace.RULES,
    *scheduling.RULES,
    *security.RULES,
)
"""The rules for a new VMI, each of which leaves its causes in the review that it is given."""


def validate(
    vmi: Mapping[str, Any],
    architecture: str,
    config: ClusterConfig | Mapping[str, Any] | None = None,
) -> list[Cause]:
    """Find what KubeVirt's admission of a new VMI refuses.

    Args:
        vmi: a VirtualMachineInstance as JSON gives it. Anything else is answered with a cause, never raised.
        architecture: amd64, arm64 or s390x: for a VMI whose ``spec.architecture`` is not set.
        config: the cluster's configuration (``spec.configuration`` of the KubeVirt object, or its
            ``ClusterConfig``); None for the defaults.

    Returns:
        Causes in the order of the rules, none for a valid VMI. Wrong types, unknown and missing fields come
        alone: the rules are not asked before those are right.

    Raises:
        ValueError: `config` is malformed.
    """
    cluster = ClusterConfig.of(config)
    document, _, causes = _read(vmi)
    if causes:
        return causes
    review = Review(document, architecture, cluster, pr_enabled(config, cluster))
    for rule in RULES:
        rule(review)
    return review.causes


def warnings(
    vmi: Mapping[str, Any],
    architecture: str,
    config: ClusterConfig | Mapping[str, Any] | None = None,
) -> list[Cause]:
    """Find what `validate` allows although libvirt, QEMU or the API server will refuse it, or ignore it.

    Arguments and shape are those of `validate`; the two lists have no finding in common.

    Returns:
        Causes, none for a VMI without doubts, and none for one whose fields have the wrong types: ask
        `validate` first.

    Raises:
        ValueError: `config` is malformed.
    """
    cluster = ClusterConfig.of(config)
    document, reader, causes = _read(vmi)
    if causes:
        return []
    review = Review(document, architecture, cluster, pr_enabled(config, cluster))
    for rule in hypervisor.RULES:
        rule(review)
    return review.causes + reader.ignored


def _read(vmi: object) -> tuple[dict[str, Any], SchemaReader, list[Cause]]:
    """A typed copy of a VMI, its reader, and the causes why the copy cannot be used."""
    reader = SchemaReader()
    if not isinstance(vmi, Mapping):
        return {}, reader, [Cause("", TYPE_INVALID, f"a {_KIND} must be an object, not {kind(vmi)}")]
    document = reader.read(vmi, _KIND)
    causes = reader.causes
    for field, allowed in (("kind", (_KIND,)), ("apiVersion", _API_VERSIONS)):
        value = document.get(field)
        if value and value not in allowed:
            message = f"is {shown(value)}: must be {' or '.join(allowed)}"
            causes.insert(0, Cause(field, NOT_SUPPORTED, message))
    return document, reader, causes


def pr_enabled(config: object, cluster: ClusterConfig) -> bool:
    """Whether the cluster has SCSI persistent reservation (`pkg/virt-config/virt-config.go:578`)."""
    section = config.get("persistentReservationConfiguration") if isinstance(config, Mapping) else None
    enabled = section.get("enabled") if isinstance(section, Mapping) else None
    return enabled if isinstance(enabled, bool) else "PersistentReservation" in cluster.feature_gates
