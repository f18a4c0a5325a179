"""The end of a VMI that cannot be read: it must be possible to delete it."""

from __future__ import annotations

from kvnode.controller import names
from kvnode.controller.jsonpatch import change, test
from kvnode.controller.meta import finalizers, name_of
from kvnode.controller.vmi.run import Run
from kvnode.controller.vmi.sync import delete_pods
from kvnode.kube.objects import uid_of
from kvnode.kube.resources import VIRTUAL_MACHINE_INSTANCES

_OURS = (names.VMI_FINALIZER, names.OLD_VMI_FINALIZER, names.VM_FINALIZER)


async def take_down(run: Run) -> None:
    """Delete the pods of a VMI that is being deleted; when none is left, nothing can run, and it may go.

    How it ended cannot be told: its VM's controller does not wait for that either.

    Raises:
        SyncError: a pod could not be deleted.
        ApiError: the server refused.
    """
    if not run.pod_expectations.satisfied(run.key):
        return
    await delete_pods(run)
    vmi, old = run.original, finalizers(run.original)
    new = [one for one in old if one not in _OURS]
    if run.pods() or new == old:
        return
    patch = [test("/metadata/uid", uid_of(vmi)), *change("/metadata/finalizers", old, new)]
    await run.world.api.patch(VIRTUAL_MACHINE_INSTANCES, name_of(vmi), run.namespace, patch)
