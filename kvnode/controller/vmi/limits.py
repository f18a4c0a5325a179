"""Limits that a namespace demands of its pods (``services/template.go:1590-1716``, ``renderresources.go:730-764``)."""

from __future__ import annotations

import math

from kvnode.controller.indices import NAMESPACE
from kvnode.controller.labelselector import selects
from kvnode.controller.meta import at, labels_of
from kvnode.controller.vmi.run import Run
from kvnode.kube.objects import Object

RATIO_LABEL = "alpha.kubevirt.io/auto-memory-limits-ratio"
"""Of a namespace: how many times the request a limit is."""

DEFAULT_RATIO = 2.0


def needs_cpu_limit(run: Run) -> bool:
    """Whether the pod must limit its CPUs: its namespace has a quota of them, or is one of those selected."""
    if _is_limited(run.original, "cpu"):
        return False
    return _has_quota(run, "cpu") or selects(run.settings.cpu_limit_namespaces, labels_of(_namespace(run)))


def memory_limit_ratio(run: Run) -> float | None:
    """How many times the request the pod's memory is to be limited to; None if it need not be."""
    if _is_limited(run.original, "memory") or not _has_quota(run, "memory"):
        return None
    try:
        ratio = float(labels_of(_namespace(run)).get(RATIO_LABEL, DEFAULT_RATIO))
    except ValueError:
        return DEFAULT_RATIO
    return ratio if math.isfinite(ratio) and ratio >= 1 else DEFAULT_RATIO


def _is_limited(vmi: Object, resource: str) -> bool:
    return resource in (at(vmi, "spec", "domain", "resources", "limits") or {})


def _has_quota(run: Run, resource: str) -> bool:
    quotas = run.caches.quotas.by(NAMESPACE, run.namespace)
    return any(f"limits.{resource}" in (at(one, "spec", "hard") or {}) for one in quotas)


def _namespace(run: Run) -> Object:
    return run.caches.namespaces.get(run.namespace) or {}
