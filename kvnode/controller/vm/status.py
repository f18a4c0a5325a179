"""What a VM's status says after a pass (``vm.go:2457-2514,2700-2853``)."""

from __future__ import annotations

from kvnode.controller import conditions, names
from kvnode.controller.equality import equal
from kvnode.controller.errors import SyncError
from kvnode.controller.instance import is_final, is_waiting_for_sync
from kvnode.controller.jsonpatch import change
from kvnode.controller.meta import finalizers, name_of, put, status_of
from kvnode.controller.vm.backoff import note_start_failure
from kvnode.controller.vm.generation import note_generations
from kvnode.controller.vm.printable import printable_status
from kvnode.controller.vm.requests import drop_served_request
from kvnode.controller.vm.run import Run
from kvnode.controller.vm.start import RESTART_REQUIRED
from kvnode.controller.vm.strategy import known_strategy
from kvnode.kube.objects import is_deleting
from kvnode.kube.resources import VIRTUAL_MACHINE_INSTANCES, VIRTUAL_MACHINES

READY = "Ready"
FAILURE = "Failure"
_OWN = (READY, FAILURE, RESTART_REQUIRED)
"""Conditions that do not follow the VMI's of the same name."""


async def update_status(run: Run, error: SyncError | None) -> None:
    """Work out the VM's status, write it if it changed, and let a VMI go that has ended.

    Raises:
        ApiError: the server refused.
    """
    await note_generations(run)
    before = run.original.get("status") or {}
    _describe(run, error)
    if not equal(before, run.vm.get("status") or {}):
        await run.world.api.replace(VIRTUAL_MACHINES, run.vm, subresource="status")
    vmi = run.vmi
    if vmi is None or names.VM_FINALIZER not in finalizers(vmi):
        return
    if is_final(vmi) or (is_waiting_for_sync(vmi) and is_deleting(vmi)):
        old = finalizers(vmi)
        patch = change("/metadata/finalizers", old, [one for one in old if one != names.VM_FINALIZER])
        await run.world.api.patch(VIRTUAL_MACHINE_INSTANCES, name_of(vmi), run.namespace, patch)


def _describe(run: Run, error: SyncError | None) -> None:
    status, vmi = status_of(run.vm), run.vmi
    put(status, "created", vmi is not None)
    put(status, "ready", conditions.has(vmi, READY, "True"))
    strategy = known_strategy(run.original)
    if status.get("runStrategy") or vmi is not None:
        # Until a VMI was made, its absence tells that the VM never started.
        put(status, "runStrategy", strategy or "")
    drop_served_request(run.vm, vmi)
    note_start_failure(run.vm, vmi, known_strategy(run.vm), run.world.clock())
    _set_ready(run)
    _set_failure(run, error)
    _follow_conditions(run)
    status["printableStatus"] = printable_status(run)


def _set_ready(run: Run) -> None:
    """The VMI's condition Ready, or that there is none."""
    found = conditions.find(run.vmi, READY)
    if found is not None:
        conditions.update(run.vm, dict(found))
        return
    now = run.now()
    reason, message = "VMIConditionMissing", "the VirtualMachineInstance does not say whether it is ready"
    if run.vmi is None:
        reason, message = "VMINotExists", "there is no VirtualMachineInstance"
    conditions.update(run.vm, conditions.make(READY, "False", reason, message, transition=now, probe=now))


def _set_failure(run: Run, error: SyncError | None) -> None:
    if error is None:
        conditions.remove(run.vm, FAILURE)
    else:
        made = conditions.make(FAILURE, "True", error.reason, error.message, transition=run.now())
        conditions.update(run.vm, made)


def _follow_conditions(run: Run) -> None:
    """Have the VMI's other conditions, and no more."""
    if run.vmi is None:
        return
    theirs = [one for one in conditions.conditions(run.vmi) if one.get("type") not in _OWN]
    for condition in theirs:
        conditions.update(run.vm, dict(condition))
    kept = {*_OWN, *(one.get("type") for one in theirs)}
    for condition in list(conditions.conditions(run.vm)):
        if condition.get("type") not in kept:
            conditions.remove(run.vm, condition["type"])
