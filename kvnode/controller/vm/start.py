"""Start and stop: the VMI made, and deleted (``vm.go:1257-1345,1658-1688``)."""

from __future__ import annotations

from kvnode.api.errors import FieldError
from kvnode.controller import conditions, names
from kvnode.controller.errors import SyncError
from kvnode.controller.meta import name_of
from kvnode.controller.networks import check_new_networks
from kvnode.controller.ports import NORMAL, WARNING
from kvnode.controller.vm.blueprint import instance_for
from kvnode.controller.vm.datavolumes import DataVolumeError, ensure_data_volumes
from kvnode.controller.vm.revisions import ensure_start_revision
from kvnode.controller.vm.run import Run
from kvnode.kube.errors import ApiError
from kvnode.kube.objects import Object, is_deleting, uid_of
from kvnode.kube.resources import VIRTUAL_MACHINE_INSTANCES

RESTART_REQUIRED = "RestartRequired"
MANUAL_RECOVERY = "ManualRecoveryRequired"


async def start(run: Run) -> None:
    """Create the VMI, unless DataVolumes or a person's help must come first.

    Raises:
        SyncError: it could not be created.
    """
    try:
        ready = await ensure_data_volumes(run)
    except DataVolumeError as error:
        raise SyncError(names.FAILED_CREATE, f"cannot start the VM: {error}") from error
    if not ready or conditions.has(run.vm, MANUAL_RECOVERY, "True"):
        return
    conditions.remove(run.vm, RESTART_REQUIRED)
    try:
        revision = await ensure_start_revision(run.world, run.vm)
        vmi = instance_for(run.vm, revision, run.settings.config)
        check_new_networks(vmi["spec"])
        await _create(run, vmi)
    except (ApiError, FieldError) as error:
        raise SyncError(names.FAILED_CREATE, f"cannot start the VM: {error}") from error


async def _create(run: Run, vmi: Object) -> None:
    run.expect_start()
    try:
        # The VM's status tells of it at once, and not first that there is none.
        run.vmi = await run.world.api.create(VIRTUAL_MACHINE_INSTANCES, vmi)
    except ApiError as error:
        run.expectations.creation_observed(run.key)
        run.event(WARNING, names.FAILED_CREATE, f"The VirtualMachineInstance could not be created: {error}")
        raise
    message = f"Started the VM: created VirtualMachineInstance {name_of(vmi)}"
    run.event(NORMAL, names.SUCCESSFUL_CREATE, message)


async def stop(run: Run) -> None:
    """Delete the VMI, unless there is none or it is on its way.

    Raises:
        SyncError: the server refused.
    """
    vmi = run.vmi
    if vmi is None or is_deleting(vmi):
        return
    run.expect_stop(vmi)
    try:
        await run.world.api.delete(VIRTUAL_MACHINE_INSTANCES, name_of(vmi), run.namespace)
    except ApiError as error:
        run.not_stopped(vmi)
        message = f"VirtualMachineInstance {name_of(vmi)} could not be deleted: {error}"
        run.event(WARNING, names.FAILED_DELETE, message)
        raise SyncError(names.FAILED_DELETE, message) from error
    conditions.remove(run.vm, RESTART_REQUIRED)
    message = f"Stopped the VM: deleted the VirtualMachineInstance with UID {uid_of(vmi)}"
    run.event(NORMAL, names.SUCCESSFUL_DELETE, message)
