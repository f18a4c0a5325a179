"""``status.printableStatus``: one word for people (``vm.go:2516-2700``)."""

from __future__ import annotations

from collections.abc import Callable

from kvnode.api.phases import Phase
from kvnode.controller import conditions, names
from kvnode.controller.instance import is_final, is_migrating, is_waiting_for_sync, phase
from kvnode.controller.meta import at
from kvnode.controller.vm.backoff import RESTARTING
from kvnode.controller.vm.run import Run
from kvnode.controller.vm.strategy import WAIT_AS_RECEIVER, is_to_run, known_strategy
from kvnode.controller.volumes import has_failed, has_unbound_claim, is_provisioning, named_data_volumes
from kvnode.kube.objects import is_deleting

UNKNOWN = "Unknown"
_STARTING = (Phase.UNSET, Phase.PENDING, Phase.SCHEDULING, Phase.SCHEDULED)


def printable_status(run: Run) -> str:
    """The first word that applies."""
    return next((word for word, applies in _WORDS if applies(run)), UNKNOWN)


def _is_stopping(run: Run) -> bool:
    vmi = run.vmi
    return vmi is not None and not is_final(vmi) and (is_deleting(vmi) or run.stop_expected)


def _is_running(run: Run) -> bool:
    return run.vmi is not None and phase(run.vmi) == Phase.RUNNING


def _is_unsynchronized(reason: str) -> Callable[[Run], bool]:
    return lambda run: conditions.has(run.vmi, "Synchronized", "False", reason)


def _has_volume_error(run: Run) -> bool:
    return any(has_failed(one) for one in named_data_volumes(run.caches, run.namespace, run.volumes))


def _is_provisioning(run: Run) -> bool:
    return any(is_provisioning(one) for one in named_data_volumes(run.caches, run.namespace, run.volumes))


def _waits_for_binding(run: Run) -> bool:
    return is_to_run(run) and has_unbound_claim(run.caches, run.namespace, run.volumes)


def _is_starting(run: Run) -> bool:
    return run.start_expected if run.vmi is None else phase(run.vmi) in _STARTING


def _is_stopped(run: Run) -> bool:
    return not run.start_expected if run.vmi is None else is_final(run.vmi)


def _fails_to_start(run: Run) -> bool:
    if run.vmi is not None and not is_final(run.vmi):
        return False
    failures = int(at(run.vm, "status", "startFailure", "consecutiveFailCount") or 0)
    return not run.start_expected and failures > 0 and known_strategy(run.vm) in RESTARTING


def _waits_for_receiver(run: Run) -> bool:
    waits = run.vmi is None or is_waiting_for_sync(run.vmi)
    return waits and known_strategy(run.vm) == WAIT_AS_RECEIVER


_WORDS: tuple[tuple[str, Callable[[Run], bool]], ...] = (
    ("Terminating", lambda run: is_deleting(run.vm)),
    ("Stopping", _is_stopping),
    ("Migrating", lambda run: is_migrating(run.vmi, run.world.clock())),
    ("Paused", lambda run: _is_running(run) and conditions.has(run.vmi, "Paused", "True")),
    ("Running", _is_running),
    ("ErrorPvcNotFound", _is_unsynchronized(names.FAILED_PVC_NOT_FOUND)),
    ("DataVolumeError", _has_volume_error),
    ("ErrorUnschedulable", lambda run: conditions.has(run.vmi, "PodScheduled", "False", "Unschedulable")),
    ("Provisioning", _is_provisioning),
    ("WaitingForVolumeBinding", _waits_for_binding),
    ("ErrImagePull", _is_unsynchronized("ErrImagePull")),
    ("ImagePullBackOff", _is_unsynchronized("ImagePullBackOff")),
    ("Starting", _is_starting),
    ("CrashLoopBackOff", _fails_to_start),
    ("Stopped", _is_stopped),
    ("WaitingForReceiver", _waits_for_receiver),
)
