"""Whether two parts of objects mean the same: ``equality.Semantic`` of k8s.io/apimachinery."""

from __future__ import annotations

from typing import Any

from kvnode.api.errors import FieldError
from kvnode.spec.normal import normal_instance

_MAPS = ("labels", "annotations", "matchLabels", "nodeSelector", "activePods")
"""Fields whose keys are their users': there "" is a value as any."""


def bare(value: Any) -> Any:
    """A value without what says no more than its absence: null, "", [], {} and false."""
    if isinstance(value, dict):
        kept = {key: item if key in _MAPS else bare(item) for key, item in value.items()}
        return {key: item for key, item in kept.items() if not _is_nothing(item)}
    if isinstance(value, list):
        return [bare(item) for item in value]
    return value


def _is_nothing(value: Any) -> bool:
    return value is None or value is False or value in ("", [], {})


def equal(one: Any, other: Any) -> bool:
    """Whether two values are the same but for parts that are absent in one and empty in the other."""
    return bool(one == other or bare(one) == bare(other))


def equal_specs(one: dict[str, Any], other: dict[str, Any]) -> bool:
    """Whether two specs of a VMI are the same, quantities compared by value."""
    if one == other:
        return True
    try:
        first, second = (normal_instance({"metadata": {}, "spec": spec}) for spec in (one, other))
    except FieldError:
        return equal(one, other)
    return bool(first["spec"] == second["spec"])
