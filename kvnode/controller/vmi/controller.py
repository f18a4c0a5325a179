"""One pass over one VirtualMachineInstance (``vmi.go:297-367``)."""

from __future__ import annotations

import copy

from kvnode.api.phases import Phase
from kvnode.controller.errors import SyncError
from kvnode.controller.instance import phase
from kvnode.controller.meta import at, is_api_observed, namespace_of, observe_api, spec_of
from kvnode.controller.ports import World
from kvnode.controller.shape import MalformedError, telling_shape
from kvnode.controller.vmi.farewell import take_down
from kvnode.controller.vmi.phases import UnknownPhaseError
from kvnode.controller.vmi.pods import current_pod
from kvnode.controller.vmi.run import Run
from kvnode.controller.vmi.status import update_status, write
from kvnode.controller.vmi.sync import sync
from kvnode.controller.volumes import data_volumes_of
from kvnode.kube.expectations import Expectations
from kvnode.kube.objects import Object, is_deleting
from kvnode.kube.resources import PODS, VIRTUAL_MACHINE_INSTANCES


class VirtualMachineInstanceController:
    """Makes a launcher pod for each VMI, and keeps the VMI's status until a node takes over.

    Whoever watches tells `pod_expectations` of pods that came and went, `claim_expectations` of claims, and
    clears `vmi_expectations` at every change of the VMI: it is not looked at between a write and its echo.
    """

    def __init__(self, world: World) -> None:
        self.world = world
        self.pod_expectations = Expectations()
        self.vmi_expectations = Expectations()
        self.claim_expectations = Expectations()

    async def reconcile(self, key: str) -> None:
        """Look at the VMI of that key (``namespace/name``).

        Raises:
            Exception: it is to be looked at again, after some time.
        """
        try:
            with telling_shape(self.world, key, VirtualMachineInstance=self.world.caches.vmis):
                await self._look_at(key)
        except (MalformedError, UnknownPhaseError):
            vmi = self.world.caches.vmis.get(key)
            if vmi is None or not is_deleting(vmi) or phase(vmi) == Phase.UNKNOWN:
                raise
            await take_down(self._run(key, vmi))

    async def _look_at(self, key: str) -> None:
        await self.world.api.settled(VIRTUAL_MACHINE_INSTANCES, key)  # its VM's controller may be deleting it
        vmi = self.world.caches.vmis.get(key)
        expected = (self.pod_expectations, self.vmi_expectations, self.claim_expectations)
        if vmi is None:
            self.vmi_expectations.forget(key)
            for one in (self.pod_expectations, self.claim_expectations):
                # The deletion may never have been: what is still to come is waited for, or a second pod is made.
                if one.satisfied(key):
                    one.forget(key)
            self.world.api.forget(VIRTUAL_MACHINE_INSTANCES, key)
            return
        if self.world.api.is_stale(VIRTUAL_MACHINE_INSTANCES, vmi):
            return  # the watch will show the rest
        run = self._run(key, vmi)
        if not is_api_observed(vmi):
            observe_api(vmi)
            await write(run, vmi)
            return
        if not all(one.satisfied(key) for one in expected):
            return
        pods = run.pods()
        if any(self.world.api.is_stale(PODS, one) for one in pods):
            return
        run.pod = current_pod(pods, str(at(vmi, "status", "nodeName") or ""))
        volumes = spec_of(vmi).get("volumes") or ()
        run.data_volumes = data_volumes_of(self.world.caches, namespace_of(vmi), volumes)
        error: SyncError | None = None
        try:
            await sync(run)
        except SyncError as raised:
            error = raised
        await update_status(run, error)
        if error is not None and error.requeue:
            raise error

    def _run(self, key: str, vmi: Object) -> Run:
        return Run(
            world=self.world,
            settings=self.world.settings(),
            key=key,
            original=copy.deepcopy(vmi),
            vmi=vmi,
            pod=None,
            data_volumes=[],
            pod_expectations=self.pod_expectations,
            vmi_expectations=self.vmi_expectations,
            claim_expectations=self.claim_expectations,
        )
