"""What a launcher pod is told of its VMI (``life.go:196-250,724-976``)."""

from __future__ import annotations

from typing import Any

from kvnode.api.names import NODE_NAME_LABEL, UNPAUSED_READINESS_GATE
from kvnode.api.phases import Phase
from kvnode.controller import conditions, names
from kvnode.controller.errors import SyncError
from kvnode.controller.instance import phase
from kvnode.controller.jsonpatch import Operation, add, escape, remove, test
from kvnode.controller.meta import annotations_of, at, labels_of, name_of, namespace_of
from kvnode.controller.mirror import mirror_patch
from kvnode.controller.vmi.backuphooks import backup_hooks
from kvnode.controller.vmi.phases import hands_over
from kvnode.controller.vmi.pods import is_ready, node_of
from kvnode.controller.vmi.run import Run
from kvnode.kube.client import PatchType
from kvnode.kube.errors import ApiError
from kvnode.kube.objects import Object, metadata
from kvnode.kube.resources import PODS

_PATH = "/metadata/annotations"
_BEFORE_HAND_OVER = (Phase.UNSET, Phase.PENDING, Phase.SCHEDULING)


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


async def tell_pod(run: Run, pod: Object) -> Object:
    """Make the pod's condition follow the VM's pauses, and labels and annotations the VMI's; the answer is that pod.

    The condition waits until the pod can be Ready otherwise; what else is to be written goes along with it.

    Raises:
        ApiError: the server refused.
    """
    condition = _gate(run, pod) if _is_gate_due(run, pod) else None
    if condition is None:
        patch = _labels_patch(run, pod, labels_of(run.vmi)) + _notes_patch(run, pod)
        return await _patch(run, pod, patch) if patch else pod
    change: Object = {"status": _conditions_change(pod, condition)}
    labels = labels_of(run.vmi)
    if hands_over(run, pod):
        labels = {**labels, NODE_NAME_LABEL: node_of(pod)}
    meta = metadata(pod)
    changes = {
        "labels": _difference(meta.get("labels"), _labels_patch(run, pod, labels)),
        "annotations": _difference(meta.get("annotations"), _notes_patch(run, pod)),
    }
    if any(changes.values()):
        # The subresource takes them, too.
        change["metadata"] = {field: value for field, value in changes.items() if value}
    return await run.world.api.patch(
        PODS, name_of(pod), namespace_of(pod), change, PatchType.STRATEGIC, subresource="status"
    )


def _is_gate_due(run: Run, pod: Object) -> bool:
    """Whether readiness could depend on the gate: not before all containers run, and the VMI is handed over."""
    return phase(run.original) not in _BEFORE_HAND_OVER or is_ready(pod)


def _gate(run: Run, pod: Object) -> dict[str, Any] | None:
    """The condition that keeps a paused VM from traffic; None if the pod has it right."""
    paused = conditions.has(run.vmi, "Paused", "True")
    unpaused = conditions.has(pod, UNPAUSED_READINESS_GATE, "True")
    if paused != unpaused:
        return None
    status, reason, message = (
        ("False", "Paused", "the VM is paused") if paused else ("True", "NotPaused", "the VM is not paused")
    )
    return conditions.make(
        UNPAUSED_READINESS_GATE, status, reason, message, transition=run.now(), probe=run.now()
    )


def _conditions_change(pod: Object, made: dict[str, Any]) -> Object:
    order = [{"type": one["type"]} for one in conditions.conditions(pod)]
    change: Object = {"conditions": [made]}
    if order:
        if made["type"] not in [one["type"] for one in order]:
            order.append({"type": made["type"]})
        change["$setElementOrder/conditions"] = order
    return change


def _labels_patch(run: Run, pod: Object, labels: dict[str, str]) -> list[Operation]:
    kept = (NODE_NAME_LABEL, names.OUTDATED_IMAGE_LABEL, *run.settings.labels_sync)
    return mirror_patch("/metadata/labels", kept, labels, metadata(pod).get("labels"))


def _notes_patch(run: Run, pod: Object) -> list[Operation]:
    settings = run.settings
    notes = {**annotations_of(run.vmi), **backup_hooks(run.vmi, settings.launcher.skip_backup_hooks)}
    kept = (*names.DESCHEDULER_ANNOTATIONS, *settings.annotations_sync, *names.BACKUP_HOOK_ANNOTATIONS)
    return mirror_patch(_PATH, kept, notes, metadata(pod).get("annotations"))


def _difference(old: dict[str, str] | None, patch: list[Operation]) -> dict[str, str | None]:
    """The keys that a patch of a whole mapping changes; None for one that it takes out."""
    if not patch:
        return {}
    before, after = old or {}, patch[-1]["value"]
    changed = {key: value for key, value in after.items() if before.get(key) != value}
    return {**changed, **{key: None for key in before if key not in after}}


async def _patch(run: Run, pod: Object, patch: list[Operation]) -> Object:
    return await run.world.api.patch(PODS, name_of(pod), namespace_of(pod), patch)
