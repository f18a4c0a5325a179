"""Bring a VMI's pods to what the VMI asks for (``life.go:66-253``)."""

from __future__ import annotations

from kvnode.controller import names
from kvnode.controller.errors import SyncError
from kvnode.controller.indices import CONTROLLER
from kvnode.controller.instance import is_final, is_migration_target, is_target_node_known
from kvnode.controller.meta import at, name_of, spec_of
from kvnode.controller.ports import NORMAL, WARNING
from kvnode.controller.vmi.create import ensure_pod
from kvnode.controller.vmi.pods import RUNNING, is_down, is_ready, is_temporary, phase_of
from kvnode.controller.vmi.podsync import mark_pod
from kvnode.controller.vmi.readiness import volumes_ready
from kvnode.controller.vmi.run import Run
from kvnode.kube.errors import ApiError
from kvnode.kube.objects import Object, is_deleting, uid_of

NO_VIRTIOFS = "MissingVirtiofsContainers"


async def sync(run: Run) -> None:
    """Make, mark or delete the pods.

    Raises:
        SyncError: something that the VMI's status is to tell.
    """
    vmi = run.original
    if is_deleting(vmi):
        await delete_pods(run)
        return
    if is_final(vmi):
        await _delete_attachments(run)
        return
    ready, waits = volumes_ready(run)
    if is_migration_target(vmi) and not is_target_node_known(vmi):
        return
    if run.pod is None:
        await ensure_pod(run, ready, waits)
        return
    if not waits:
        await _delete_temporary_pods(run, run.pod)
    if is_temporary(run.pod):
        return
    _check_virtiofs(run, run.pod)
    if is_ready(run.pod):
        run.pod = await mark_pod(run, run.pod)


async def delete_pods(run: Run) -> None:
    """Delete the pods of a VMI that is to go.

    Raises:
        SyncError: one could not be deleted.
    """
    for pod in run.pods():
        if is_deleting(pod) and not is_down(pod):
            continue
        try:
            await run.delete_pod(pod)
        except ApiError as error:
            message = f"Pod {name_of(pod)} could not be deleted: {error}"
            run.event(WARNING, names.FAILED_DELETE, message)
            raise SyncError(names.FAILED_DELETE, message) from error
        run.event(NORMAL, names.SUCCESSFUL_DELETE, f"Deleted pod {name_of(pod)}")


async def _delete_attachments(run: Run) -> None:
    """Delete the pods that hold hotplugged volumes for a VM that has ended."""
    held = [one for pod in run.pods() for one in run.caches.pods.by(CONTROLLER, uid_of(pod))]
    for pod in held:
        if is_deleting(pod):
            continue
        try:
            await run.delete_pod(pod, grace_seconds=0)
        except ApiError as error:
            message = f"attachment pod {name_of(pod)} could not be deleted: {error}"
            raise SyncError(names.FAILED_HOTPLUG_SYNC, message) from error


async def _delete_temporary_pods(run: Run, pod: Object) -> None:
    """Delete the pods that were there to bind claims, and have run."""
    found = {name_of(one): one for one in (*run.pods(), *run.caches.pods.by(CONTROLLER, uid_of(pod)))}
    for one in found.values():
        if not is_temporary(one) or not (phase_of(one) == RUNNING or is_down(one)):
            continue
        try:
            await run.delete_pod(one, grace_seconds=0)
        except ApiError as error:
            message = f"Temporary pod {name_of(one)} could not be deleted: {error}"
            run.event(WARNING, names.FAILED_DELETE, message)
            raise SyncError(names.FAILED_HOTPLUG_SYNC, message) from error
        run.event(NORMAL, names.SUCCESSFUL_DELETE, f"Deleted temporary pod {name_of(one)}")


def _check_virtiofs(run: Run, pod: Object) -> None:
    """The containers that share paths are added by a webhook, which may have been off (``pkg/virtiofs``)."""
    spec = spec_of(run.original)
    shared = {
        one.get("name")
        for one in at(spec, "domain", "devices", "filesystems") or ()
        if one.get("virtiofs") is not None
    }
    wanted = [
        f"virtiofs-{one.get('name')}"
        for one in spec.get("volumes") or ()
        if one.get("containerPath") is not None and one.get("name") in shared
    ]
    present = {one.get("name") for one in at(pod, "spec", "containers") or ()}
    missing = [one for one in wanted if one not in present]
    if missing:
        message = f"pod {name_of(pod)} lacks the containers {', '.join(missing)}: delete the VMI to have it made anew"
        run.event(WARNING, NO_VIRTIOFS, message)
        raise SyncError(NO_VIRTIOFS, message)
