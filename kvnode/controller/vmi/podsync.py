"""What a launcher pod is told of its VMI (``life.go:196-250,724-976``)."""

from __future__ import annotations

from kvnode.api.names import NODE_NAME_LABEL, UNPAUSED_READINESS_GATE
from kvnode.controller import conditions, names
from kvnode.controller.errors import SyncError
from kvnode.controller.jsonpatch import Operation, add, escape, remove, test
from kvnode.controller.meta import annotations_of, at, labels_of, name_of, namespace_of
from kvnode.controller.mirror import mirror_patch
from kvnode.controller.vmi.backuphooks import backup_hooks
from kvnode.controller.vmi.run import Run
from kvnode.kube.client import PatchType
from kvnode.kube.errors import ApiError
from kvnode.kube.objects import Object, metadata
from kvnode.kube.resources import PODS

_PATH = "/metadata/annotations"


async def mark_pod(run: Run, pod: Object) -> Object:
    """Set the annotations that evictions go by; the answer is the pod as it is then.

    Raises:
        SyncError: the server refused.
    """
    try:
        if annotations_of(pod).get(names.EVICT_ONLY_ANNOTATION) != "":
            patch = [add(f"{_PATH}/{escape(names.EVICT_ONLY_ANNOTATION)}", "")]
            if metadata(pod).get("annotations") is None:
                patch = [add(_PATH, {names.EVICT_ONLY_ANNOTATION: ""})]
            pod = await _patch(run, pod, patch)
        wanted = bool(at(run.original, "status", "evacuationNodeName"))
        path = f"{_PATH}/{escape(names.EVICTION_IN_PROGRESS_ANNOTATION)}"
        marked = annotations_of(pod).get(names.EVICTION_IN_PROGRESS_ANNOTATION)
        if wanted and marked is None:
            pod = await _patch(run, pod, [add(path, "true")])
        elif not wanted and marked is not None:
            pod = await _patch(run, pod, [test(path, marked), remove(path)])
    except ApiError as error:
        raise SyncError(
            names.FAILED_POD_PATCH, f"pod {name_of(pod)} could not be annotated: {error}"
        ) from error
    return pod


async def tell_pause(run: Run, pod: Object) -> None:
    """Set the pod's condition that keeps a paused VM from traffic.

    Raises:
        ApiError: the server refused.
    """
    paused = conditions.has(run.vmi, "Paused", "True")
    unpaused = conditions.has(pod, UNPAUSED_READINESS_GATE, "True")
    if paused != unpaused:
        return
    status, reason, message = (
        ("False", "Paused", "the VM is paused") if paused else ("True", "NotPaused", "the VM is not paused")
    )
    made = conditions.make(
        UNPAUSED_READINESS_GATE, status, reason, message, transition=run.now(), probe=run.now()
    )
    order = [{"type": one["type"]} for one in conditions.conditions(pod)]
    change: Object = {"conditions": [made]}
    if order:
        if made["type"] not in [one["type"] for one in order]:
            order.append({"type": made["type"]})
        change["$setElementOrder/conditions"] = order
    await run.world.api.patch(
        PODS, name_of(pod), namespace_of(pod), {"status": change}, PatchType.STRATEGIC, subresource="status"
    )


async def mirror_to_pod(run: Run, pod: Object) -> Object:
    """Make the pod's labels and annotations follow the VMI's; the answer is the pod as it is then.

    Raises:
        ApiError: the server refused.
    """
    settings, meta = run.settings, metadata(pod)
    notes = {**annotations_of(run.vmi), **backup_hooks(run.vmi, settings.launcher.skip_backup_hooks)}
    kept = (NODE_NAME_LABEL, names.OUTDATED_IMAGE_LABEL, *settings.labels_sync)
    patch = mirror_patch("/metadata/labels", kept, labels_of(run.vmi), meta.get("labels"))
    kept = (*names.DESCHEDULER_ANNOTATIONS, *settings.annotations_sync, *names.BACKUP_HOOK_ANNOTATIONS)
    patch += mirror_patch(_PATH, kept, notes, meta.get("annotations"))
    return await _patch(run, pod, patch) if patch else pod


async def _patch(run: Run, pod: Object, patch: list[Operation]) -> Object:
    return await run.world.api.patch(PODS, name_of(pod), namespace_of(pod), patch)
