"""What a VMI's status says after a pass, and how it is written (``life.go:256-613``)."""

from __future__ import annotations

from kvnode.api.phases import Phase
from kvnode.api.quantity import Quantity
from kvnode.controller import conditions, names
from kvnode.controller.equality import equal
from kvnode.controller.errors import SyncError
from kvnode.controller.instance import moment, phase
from kvnode.controller.meta import annotations_of, at, finalizers, labels_of, put, remove_finalizer, status_of
from kvnode.controller.vmi.backend import state_claim, tell_state_claim
from kvnode.controller.vmi.patch import owned_patch
from kvnode.controller.vmi.phases import move
from kvnode.controller.vmi.pods import is_going_down, is_temporary, launcher_image, node_of
from kvnode.controller.vmi.podsync import tell_pod
from kvnode.controller.vmi.readiness import tell_data_volumes
from kvnode.controller.vmi.run import Run
from kvnode.kube.objects import Object, metadata, uid_of
from kvnode.kube.resources import VIRTUAL_MACHINE_INSTANCES

READY = "Ready"
EVICTION_REQUESTED = "EvictionRequested"
SYNCHRONIZED = "Synchronized"
START = 2.0
"""Seconds in which a pod whose image is there starts."""
_OWNED_BY_NODE = (Phase.SCHEDULED, Phase.RUNNING)


async def update_status(run: Run, error: SyncError | None) -> None:
    """Work out the VMI's status and write it if it changed: whole, or patched while a node owns it.

    Raises:
        ApiError: the server refused.
        UnknownPhaseError: the VMI is in a phase that there is not.
    """
    vmi = run.vmi
    if names.OLD_VMI_FINALIZER in finalizers(vmi):
        remove_finalizer(vmi, names.OLD_VMI_FINALIZER)
        vmi["metadata"]["finalizers"] = [*finalizers(vmi), names.VMI_FINALIZER]
    _tell_pods(run)
    _tell_ready(run)
    if run.pod is not None and not is_temporary(run.pod):
        _tell_image(run, run.pod)
        run.pod = await tell_pod(run, run.pod)
    tell_data_volumes(vmi, run.data_volumes)
    tell_state_claim(vmi, state_claim(run.caches, run.original))
    if run.pod is not None and not is_temporary(run.pod):
        _tell_overhead(run, run.pod)
    error = move(run, error)
    _tell_eviction(run)
    if phase(run.original) in _OWNED_BY_NODE:
        patch = owned_patch(run.original, vmi)
        if patch:
            name = str(metadata(vmi)["name"])
            await run.world.api.patch(VIRTUAL_MACHINE_INSTANCES, name, run.namespace, patch)
        return
    _tell_error(run, error)
    _tell_transition(run)
    if not _is_changed(run.original, vmi):
        return
    if (left := _seconds_to_start(run)) > 0:
        run.world.queue.add_after(run.key, left)
        return
    await write(run, vmi)


async def write(run: Run, vmi: Object) -> None:
    """Write the VMI whole, and look at it again only when the cache shows that.

    Nothing is written that would be refused: what another write of ours came before is looked at again with its echo.

    Raises:
        ApiError: the server refused.
    """
    await run.world.api.settled(VIRTUAL_MACHINE_INSTANCES, run.key)
    if run.world.api.is_stale(VIRTUAL_MACHINE_INSTANCES, run.original):
        return
    run.vmi_expectations.expect_creations(run.key, 1)
    try:
        await run.world.api.replace(VIRTUAL_MACHINE_INSTANCES, vmi)
    except BaseException:
        run.vmi_expectations.clear(run.key)
        raise


def _is_changed(old: Object, new: Object) -> bool:
    exact = (
        labels_of(old) != labels_of(new),
        annotations_of(old) != annotations_of(new),
        finalizers(old) != finalizers(new),
    )
    return any(exact) or not equal(old.get("status") or {}, new.get("status") or {})


def _seconds_to_start(run: Run) -> float:
    """Seconds for which a VMI may wait to tell of its pod's node, and no more, since the pod is about to start.

    It is told with the hand-over then; whoever watches cannot know when a pod's node has become known here.
    """
    pod, old = run.pod, run.original
    if pod is None or phase(old) != Phase.SCHEDULING or not node_of(pod):
        return 0.0
    known = at(old, "status", "activePods") or {}
    if set(known) != set(at(run.vmi, "status", "activePods") or {}):
        return 0.0
    as_known = {**run.vmi, "status": {**run.vmi["status"], "activePods": known}}
    since = moment((conditions.find(pod, "PodScheduled") or {}).get("lastTransitionTime"))
    if _is_changed(old, as_known) or since is None:
        return 0.0
    age = (run.world.clock() - since).total_seconds()
    # The API's times have whole seconds. One that is yet to come is another clock's, and tells nothing.
    return START - age if -1.0 <= age < START else 0.0


def _tell_pods(run: Run) -> None:
    pods = run.pods()
    status = status_of(run.vmi)
    if pods or status.get("activePods") is not None:
        put(status, "activePods", {uid_of(one): str(at(one, "spec", "nodeName") or "") for one in pods})


def _tell_ready(run: Run) -> None:
    """The condition Ready: that of the pod, once the guest runs in it (``life.go:874``)."""
    pod, now = run.pod, run.now()
    if pod is None or is_temporary(pod):
        reason, message = "PodNotExists", "the launcher pod is not there yet"
    elif is_going_down(pod):
        reason, message = "PodTerminating", "the launcher pod is ending"
    elif phase(run.vmi) != Phase.RUNNING:
        reason, message = "GuestNotRunning", "the guest does not run yet"
    elif found := conditions.find(pod, READY):
        fields = ("type", "status", "reason", "message", "lastProbeTime", "lastTransitionTime")
        conditions.update(run.vmi, {key: found[key] for key in fields if found.get(key)})
        return
    else:
        reason, message = "PodConditionMissing", "the launcher pod does not say whether it is ready"
    conditions.update(run.vmi, conditions.make(READY, "False", reason, message, transition=now, probe=now))


def _tell_image(run: Run, pod: Object) -> None:
    """Note which launcher the VM runs in, and whether there is a newer one."""
    image = launcher_image(pod)
    kept = {key: value for key, value in labels_of(run.vmi).items() if key != names.OUTDATED_IMAGE_LABEL}
    if image not in ("", run.settings.launcher.launcher_image):
        kept[names.OUTDATED_IMAGE_LABEL] = ""
    put(run.vmi["metadata"], "labels", kept)
    put(status_of(run.vmi), "launcherContainerImageVersion", image)


def _tell_overhead(run: Run, pod: Object) -> None:
    text = annotations_of(pod).get(names.MEMORY_OVERHEAD_ANNOTATION, "")
    if run.settings.config.gate("VmiMemoryOverheadReport") and text.isascii() and text.isdigit():
        memory = status_of(run.vmi).setdefault("memory", {})
        memory["memoryOverhead"] = str(Quantity.from_bytes(int(text)))


def _tell_eviction(run: Run) -> None:
    if not at(run.vmi, "status", "evacuationNodeName"):
        conditions.remove(run.vmi, EVICTION_REQUESTED)
    elif not conditions.has(run.vmi, EVICTION_REQUESTED, "True"):
        now, message = run.now(), "the VM is to leave its node"
        made = conditions.make(
            EVICTION_REQUESTED, "True", EVICTION_REQUESTED, message, transition=now, probe=now
        )
        conditions.update(run.vmi, made)


def _tell_error(run: Run, error: SyncError | None) -> None:
    """The condition Synchronized, which is there only to say what is wrong (``conditions.go:143``)."""
    if error is not None and conditions.has(run.vmi, SYNCHRONIZED, "False", error.reason):
        return
    conditions.remove(run.vmi, SYNCHRONIZED)
    if error is not None:
        made = conditions.make(SYNCHRONIZED, "False", error.reason, error.message, transition=run.now())
        conditions.append(run.vmi, made)


def _tell_transition(run: Run) -> None:
    """When the VMI first came to its phase."""
    now = phase(run.vmi)
    if now == phase(run.original):
        return
    status = status_of(run.vmi)
    seen = status.get("phaseTransitionTimestamps") or []
    if all(one.get("phase") != now for one in seen):
        entry = {"phase": now, "phaseTransitionTimestamp": run.now()}
        status["phaseTransitionTimestamps"] = [*seen, entry]
