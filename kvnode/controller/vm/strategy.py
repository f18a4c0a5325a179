"""What a VM's run strategy makes of its VMI's state: `apply` is the decision table (``vm.go:970-1178``)."""

from __future__ import annotations

import copy
from collections.abc import Awaitable, Callable

from kvnode.api.phases import Phase
from kvnode.controller import names
from kvnode.controller.errors import SyncError
from kvnode.controller.indices import CONTROLLER
from kvnode.controller.instance import (
    is_decentralized_migration,
    is_final,
    is_migration_completed,
    is_migration_target,
    phase,
)
from kvnode.controller.meta import annotations_of, at, spec_of, status_of
from kvnode.controller.vm.backoff import time_left
from kvnode.controller.vm.requests import append_start, wants_start, wants_stop_of, will_start
from kvnode.controller.vm.run import Run
from kvnode.controller.vm.start import start, stop
from kvnode.controller.vmi.pods import current_pod, is_temporary
from kvnode.kube.errors import ApiError
from kvnode.kube.objects import Object, is_deleting, uid_of
from kvnode.kube.resources import VIRTUAL_MACHINES

ALWAYS = "Always"
RERUN_ON_FAILURE = "RerunOnFailure"
MANUAL = "Manual"
HALTED = "Halted"
ONCE = "Once"
WAIT_AS_RECEIVER = "WaitAsReceiver"

_SOON = 2.0
"""Seconds, until the end of a migration has come through to its source."""


class AmbiguousStrategyError(Exception):
    """Both ways of saying when a VM runs are used."""


def run_strategy(vm: Object) -> str:
    """When the VM is to run (``types.go:1957``): Halted when it does not say.

    Raises:
        AmbiguousStrategyError: spec.running and spec.runStrategy are both set.
    """
    spec = spec_of(vm)
    running, strategy = spec.get("running"), spec.get("runStrategy")
    if running is not None and strategy is not None:
        raise AmbiguousStrategyError("spec.running and spec.runStrategy are both set: remove spec.running")
    if strategy is not None:
        return str(strategy)
    return ALWAYS if running else HALTED


def known_strategy(vm: Object) -> str | None:
    """The run strategy, None when it cannot be told."""
    try:
        return run_strategy(vm)
    except AmbiguousStrategyError:
        return None


async def apply(run: Run, strategy: str) -> None:
    """Start, stop or leave the VMI.

    Raises:
        SyncError: that could not be done, or there is no such strategy.
    """
    decide = _DECISIONS.get(strategy)
    if decide is None:
        raise SyncError(
            names.FAILED_CREATE, f"spec.runStrategy: {strategy!r} is none of {', '.join(_DECISIONS)}"
        )
    await decide(run)


async def _always(run: Run) -> None:
    vmi = run.vmi
    if vmi is None:
        await _start_when_due(run)
    elif wants_stop_of(run.vm, vmi) or is_final(vmi):
        if not is_decentralized_migration(vmi):
            await stop(run)
        elif is_migration_completed(vmi):
            spec_of(run.vm)["runStrategy"] = HALTED  # it runs elsewhere now
        else:
            run.world.queue.add_after(run.key, _SOON)


async def _start_when_due(run: Run) -> None:
    left = time_left(run.vm, run.world.clock())
    if left > 0:
        run.world.queue.add_after(run.key, left)
    else:
        await start(run)


async def _rerun_on_failure(run: Run) -> None:
    vmi = run.vmi
    if vmi is None:
        if _is_rerun_due(run.vm):
            await _start_when_due(run)
        return
    if not is_deleting(vmi) and (is_final(vmi) or wants_stop_of(run.vm, vmi)):
        if phase(vmi) == Phase.FAILED or (run.settings.rerun_evicted and _is_evicted(run, vmi)):
            await _ask_for_start(run)
        await stop(run)


async def _ask_for_start(run: Run) -> None:
    """Write the request before the VMI goes: of one that is going nobody can tell any more whether it is owed.

    Raises:
        ApiError: the server refused; the VMI is there yet.
    """
    if will_start(run.vm):
        return
    append_start(run.vm)
    written = await run.world.api.replace(VIRTUAL_MACHINES, run.vm, subresource="status")
    run.vm, run.original = written, copy.deepcopy(written)


def _is_evicted(run: Run, vmi: Object) -> bool:
    """Whether the guest shut down because somebody deleted its pod: not by itself, nor because it was asked to."""
    if wants_stop_of(run.vm, vmi):
        return False
    pods = [one for one in run.caches.pods.by(CONTROLLER, uid_of(vmi)) if not is_temporary(one)]
    pod = current_pod(pods, str(at(vmi, "status", "nodeName") or ""))
    # Of a VMI that is not deleted no controller deletes the pod.
    return pod is None or is_deleting(pod)


def _is_rerun_due(vm: Object) -> bool:
    """A VM that comes from another strategy, or is new, starts without being asked."""
    return wants_start(vm) or status_of(vm).get("runStrategy", "") != RERUN_ON_FAILURE


async def _manual(run: Run) -> None:
    if run.vmi is None:
        if wants_start(run.vm):
            await start(run)
    elif wants_stop_of(run.vm, run.vmi):
        await stop(run)


async def _halted(run: Run) -> None:
    if run.vmi is not None:
        await stop(run)
    elif wants_start(run.vm):
        await _un_halt(run)


async def _un_halt(run: Run) -> None:
    """Make a halted VM that is to be started one that always runs; the write brings it back here."""
    wanted = copy.deepcopy(run.vm)
    if spec_of(wanted).get("runStrategy") is not None:
        wanted["spec"]["runStrategy"] = ALWAYS
    else:
        wanted["spec"]["running"] = True
    try:
        written = await run.world.api.replace(VIRTUAL_MACHINES, wanted)
    except ApiError as error:
        raise SyncError(names.FAILED_CREATE, f"cannot start the halted VM: {error}") from error
    run.vm, run.is_rewritten = {**written, "status": status_of(run.vm)}, True


async def _once(run: Run) -> None:
    if run.vmi is None:
        await start(run)


async def _wait_as_receiver(run: Run) -> None:
    vmi = run.vmi
    if vmi is None:
        await start(run)
    elif is_migration_target(vmi):
        return
    elif is_migration_completed(vmi):
        restored = annotations_of(run.vm).get(names.RESTORE_RUN_STRATEGY_ANNOTATION)
        if restored is not None:
            spec_of(run.vm)["runStrategy"] = restored
    else:
        raise SyncError(
            names.FAILED_CREATE,
            "the VM waits to receive a running one, but its VirtualMachineInstance was started here: stop it first",
        )


_DECISIONS: dict[str, Callable[[Run], Awaitable[None]]] = {
    ALWAYS: _always,
    RERUN_ON_FAILURE: _rerun_on_failure,
    MANUAL: _manual,
    HALTED: _halted,
    ONCE: _once,
    WAIT_AS_RECEIVER: _wait_as_receiver,
}


def is_to_run(run: Run) -> bool:
    """Whether the VM is set to be running (``vm.go:1215``).

    There a stopped VM of RerunOnFailure counts, too, though nothing will start it.
    """
    strategy, vmi = known_strategy(run.vm), run.vmi
    if strategy == MANUAL:
        return wants_start(run.vm) if vmi is None else not wants_stop_of(run.vm, vmi)
    if strategy == RERUN_ON_FAILURE:
        return _is_rerun_due(run.original) if vmi is None else phase(vmi) != Phase.SUCCEEDED
    if strategy == ONCE:
        return vmi is None
    return strategy == ALWAYS
