"""A status's list of conditions. All functions change ``status["conditions"]`` and nothing else."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from kvnode.kube.objects import timestamp

Status = dict[str, Any]
Condition = dict[str, Any]

TRUE, FALSE = "True", "False"
LONGEST_MESSAGE = 32_768
"""Characters of a message, as of Kubernetes' own conditions: a launcher may say more than an object can hold."""


def make(
    kind: str,
    value: str,
    *,
    reason: str = "",
    message: str = "",
    probed: datetime | None = None,
    changed: datetime | None = None,
) -> Condition:
    """A condition of type ``kind`` with status ``value``; what is not given is left out."""
    condition = {"type": kind, "status": value}
    if probed:
        condition["lastProbeTime"] = timestamp(probed)
    if changed:
        condition["lastTransitionTime"] = timestamp(changed)
    if reason:
        condition["reason"] = reason
    if message:
        condition["message"] = message[:LONGEST_MESSAGE]
    return condition


def find(status: Status, kind: str) -> Condition | None:
    """The condition of a type; None when there is none."""
    return next((one for one in status.get("conditions") or () if one.get("type") == kind), None)


def add(status: Status, condition: Condition) -> None:
    """Append a condition."""
    status["conditions"] = [*(status.get("conditions") or ()), condition]


def remove(status: Status, kind: str) -> None:
    """Remove the conditions of a type."""
    if find(status, kind) is not None:
        status["conditions"] = [one for one in status["conditions"] if one.get("type") != kind]


def replace(status: Status, condition: Condition) -> None:
    """Move the condition to the end when any of it changed, so that its new state comes last."""
    present = find(status, condition["type"])
    if present is not None and _set_fields(present) == _set_fields(condition):
        return
    remove(status, condition["type"])
    add(status, condition)


def update(status: Status, condition: Condition) -> None:
    """Put the condition in the place of its like when status or reason changed; append it where there is none."""
    found = status.get("conditions") or []
    for index, one in enumerate(found):
        if one.get("type") == condition["type"]:
            if any((one.get(name) or "") != (condition.get(name) or "") for name in ("status", "reason")):
                status["conditions"] = [*found[:index], condition, *found[index + 1 :]]
            return
    add(status, condition)


def _set_fields(condition: Condition) -> Condition:
    return {name: value for name, value in condition.items() if value}
