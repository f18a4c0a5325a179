"""Which news of a VM and its VMI are looked at once, and which can wait for the next to be told in one write.

A VMI that starts changes half a dozen times in a second, and of most changes its VM's status says little or nothing.
"""

from __future__ import annotations

from typing import Any

from kvnode.api.phases import Phase
from kvnode.controller import conditions
from kvnode.controller.instance import is_final, phase
from kvnode.controller.meta import at, finalizers, spec_of
from kvnode.kube.informer import Change
from kvnode.kube.objects import Object, is_deleting

SOON = 2.0
"""Seconds that news may wait."""

_TELLING = ("Ready", "Paused", "Synchronized", "PodScheduled")
"""Conditions that the word for people, or whether the VM is ready, depends on."""


def vm_cannot_wait(change: Change) -> bool:
    """Whether a VM must be looked at once: unless we wrote it, and not for what we wrote."""
    before, after = change.before, change.after
    if not change.own or before is None or after is None:
        return True
    return _will(before) != _will(after)


def _will(vm: Object) -> tuple[Any, ...]:
    """What decides whether the VM runs."""
    spec = spec_of(vm)
    return spec.get("running"), spec.get("runStrategy"), is_deleting(vm), is_deleting(vm) and finalizers(vm)


def vmi_cannot_wait(change: Change) -> bool:
    """Whether a VMI's VM must be looked at once: it was not we who made it, it ends, or its VM's users would notice."""
    before, after = change.before, change.after
    if after is None:
        return True
    if before is None:
        return not change.own
    if is_deleting(after):
        return not is_deleting(before) or finalizers(before) != finalizers(after) or _tells(before, after)
    if at(before, "metadata", "ownerReferences") != at(after, "metadata", "ownerReferences"):
        return True
    return before.get("spec") != after.get("spec") or _tells(before, after)


def _tells(before: Object, after: Object) -> bool:
    if phase(before) != phase(after) and (is_final(after) or phase(before) == Phase.RUNNING):
        return True
    migrations = (at(one, "status", "migrationState") for one in (before, after))
    return _word(before) != _word(after) or next(migrations) != next(migrations)


def _word(vmi: Object) -> list[Any]:
    found = [(kind, conditions.find(vmi, kind) or {}) for kind in _TELLING]
    # A VMI that does not say that it is Ready is not.
    return [
        (one.get("status") == "True") if kind == "Ready" else (one.get("status"), one.get("reason"))
        for kind, one in found
    ]
