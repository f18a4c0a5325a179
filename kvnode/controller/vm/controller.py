"""One pass over one VirtualMachine (``vm.go:357-458``)."""

from __future__ import annotations

import copy

from kvnode.controller import names
from kvnode.controller.errors import SyncError
from kvnode.controller.meta import finalizers, is_api_observed, observe_api
from kvnode.controller.ports import World
from kvnode.controller.shape import telling_shape
from kvnode.controller.vm.claims import adopt_data_volumes, claimed_instance
from kvnode.controller.vm.firmware import keep_uuid
from kvnode.controller.vm.run import Run
from kvnode.controller.vm.status import update_status
from kvnode.controller.vm.sync import sync
from kvnode.kube.expectations import Expectations
from kvnode.kube.objects import Object, is_deleting, metadata
from kvnode.kube.resources import VIRTUAL_MACHINE_INSTANCES, VIRTUAL_MACHINES


class VirtualMachineController:
    """Makes a VMI of each VM that is to run, and tells in the VM's status what became of it.

    `expectations` holds the VMIs that were made and deleted, `data_volume_expectations` the DataVolumes; whoever
    watches those tells them what came (`Expectations.creation_observed`, `Expectations.deletion_observed`
    with `kvnode.controller.vm.run.deletion_marker`).
    """

    def __init__(self, world: World) -> None:
        self.world = world
        self.expectations = Expectations()
        self.data_volume_expectations = Expectations()

    async def reconcile(self, key: str) -> None:
        """Look at the VM of that key (``namespace/name``).

        Raises:
            Exception: it is to be looked at again, after some time.
        """
        caches = self.world.caches
        with telling_shape(self.world, key, VirtualMachine=caches.vms, VirtualMachineInstance=caches.vmis):
            await self._look_at(key)

    async def _look_at(self, key: str) -> None:
        vm = self.world.caches.vms.get(key)
        if vm is None:
            self.expectations.forget(key)
            self.data_volume_expectations.forget(key)
            self.world.api.forget(VIRTUAL_MACHINES, key)
            return
        vmi = self.world.caches.vmis.get(key)
        if self._is_stale(vm, vmi):
            return  # the watch will show the rest
        if not is_api_observed(vm):
            vm = await self._take_up(vm)
            if is_deleting(vm):
                return
        vmi = await claimed_instance(self.world, vm, vmi)
        if not is_deleting(vm):
            await adopt_data_volumes(self.world, vm)
        run = Run(
            world=self.world,
            settings=self.world.settings(),
            key=key,
            original=copy.deepcopy(vm),
            vm=vm,
            vmi=vmi,
            expectations=self.expectations,
            data_volume_expectations=self.data_volume_expectations,
        )
        error: SyncError | None = None
        try:
            await sync(run)
        except SyncError as raised:
            error = raised
        if is_deleting(vm) and not metadata(run.vm).get("finalizers"):
            return  # it went with its last finalizer, and has no status any more
        await update_status(run, error)
        if error is not None:
            raise error

    def _is_stale(self, vm: Object, vmi: Object | None) -> bool:
        if self.world.api.is_stale(VIRTUAL_MACHINES, vm):
            return True
        return vmi is not None and self.world.api.is_stale(VIRTUAL_MACHINE_INSTANCES, vmi)

    async def _take_up(self, vm: Object) -> Object:
        """Write all that a VM seen for the first time lacks, at once; the answer is the VM as it is then.

        Raises:
            ApiError: the server refused.
        """
        observe_api(vm)
        if not is_deleting(vm):
            if names.VM_FINALIZER not in finalizers(vm):
                vm["metadata"]["finalizers"] = [*finalizers(vm), names.VM_FINALIZER]
            keep_uuid(vm)
        return await self.world.api.replace(VIRTUAL_MACHINES, vm)
