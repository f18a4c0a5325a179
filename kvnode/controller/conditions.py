"""The conditions in an object's status (``pkg/controller/conditions.go``)."""

from __future__ import annotations

from typing import Any

from kvnode.controller.meta import put
from kvnode.kube.objects import Object

Condition = dict[str, Any]


def conditions(obj: Object | None) -> list[Condition]:
    """The object's conditions; what is none, or says not which, is left out."""
    found = ((obj or {}).get("status") or {}).get("conditions")
    if not isinstance(found, list):
        return []
    return [one for one in found if isinstance(one, dict) and one.get("type")]


def find(obj: Object | None, kind: str) -> Condition | None:
    """The condition of a type."""
    return next((one for one in conditions(obj) if one.get("type") == kind), None)


def has(obj: Object | None, kind: str, status: str | None = None, reason: str | None = None) -> bool:
    """Whether there is a condition of that type, status and reason; None: of any."""
    found = find(obj, kind)
    return (
        found is not None
        and (status is None or found.get("status") == status)
        and (reason is None or (found.get("reason") or "") == reason)
    )


def update(obj: Object, new: Condition) -> None:
    """Set a condition, unless it says the same already: type, status and reason."""
    status = obj.setdefault("status", {})
    held = conditions(obj)
    for index, one in enumerate(held):
        if one.get("type") == new["type"]:
            if _says(one) != _says(new):
                held[index] = new
            break
    else:
        held.append(new)
    status["conditions"] = held


def append(obj: Object, new: Condition) -> None:
    """Add a condition at the end."""
    status = obj.setdefault("status", {})
    status["conditions"] = [*conditions(obj), new]


def remove(obj: Object, kind: str) -> None:
    """Take the condition of a type away."""
    if find(obj, kind) is not None:
        put(obj["status"], "conditions", [one for one in conditions(obj) if one.get("type") != kind])


def same(one: Object, other: Object) -> bool:
    """Whether two objects have conditions that say the same, in whatever order."""
    first, second = conditions(one), conditions(other)
    if len(first) != len(second):
        return False
    return all(has(other, c["type"], c.get("status"), c.get("reason") or "") for c in first)


def _says(condition: Condition) -> tuple[str, str]:
    return condition.get("status") or "", condition.get("reason") or ""


def make(
    kind: str,
    status: str,
    reason: str = "",
    message: str = "",
    *,
    transition: str = "",
    probe: str = "",
) -> Condition:
    """A condition; times and texts that are "" stay out."""
    made = {"type": kind, "status": status, "reason": reason, "message": message}
    made |= {"lastProbeTime": probe, "lastTransitionTime": transition}
    return {key: value for key, value in made.items() if value}
