"""Run the controllers: watches, queues and workers around their decisions."""

from __future__ import annotations

import asyncio
import logging
import os
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from kvnode.api.names import APP_LABEL
from kvnode.controller import indices
from kvnode.controller.freshness import FreshApi
from kvnode.controller.meta import at
from kvnode.controller.node import NodeController
from kvnode.controller.ports import Caches, Settings, World
from kvnode.controller.vm import VirtualMachineController
from kvnode.controller.vmi import VirtualMachineInstanceController
from kvnode.controller.wiring import InstanceHandlers, MachineHandlers, NodeHandlers
from kvnode.kube import resources
from kvnode.kube.client import Client
from kvnode.kube.errors import KubeError, NotFound
from kvnode.kube.events import EventRecorder
from kvnode.kube.informer import Change, Informer, run_informers
from kvnode.kube.objects import Object
from kvnode.kube.queue import WorkQueue, work
from kvnode.kube.resources import Resource
from kvnode.kube.store import Indexer, Store
from kvnode.spec.config import ClusterConfig

logger = logging.getLogger(__name__)

COMPONENT = "virtualmachine-controller"

RECHECK = 30.0
"""Seconds between looks for another project's kind that is not installed."""

MIGRATIONS = Resource(
    "kubevirt.io", "v1", "virtualmachineinstancemigrations", "VirtualMachineInstanceMigration"
)
STORAGE_CLASSES = Resource("storage.k8s.io", "v1", "storageclasses", "StorageClass", namespaced=False)


@dataclass(frozen=True, slots=True)
class Workers:
    """How many objects of a kind are looked at side by side (``application.go:125``)."""

    vms: int = 3
    vmis: int = 10
    nodes: int = 3


@dataclass(slots=True)
class _Configuration:
    """The settings as the KubeVirt object has them; those that cannot be read leave the last good ones."""

    settings: Settings

    def take(self, change: Change) -> None:
        """Read ``spec.configuration``; without a KubeVirt object there is none."""
        found = at(change.after, "spec", "configuration") or {}
        try:
            config = ClusterConfig.from_mapping(found)
        except ValueError as error:
            logger.warning("KubeVirt %s: %s: the settings stay as they were", change.key, error)
            return
        self.settings = replace(
            self.settings,
            config=config,
            state_storage_class=str(found.get("vmStateStorageClass") or ""),
            cpu_limit_namespaces=found.get("autoCPULimitNamespaceLabelSelector"),
        )


@dataclass(slots=True)
class Manager:
    """The controllers of VMs, VMIs and nodes against one API server. To be made inside the event loop."""

    client: Client
    settings: Settings = field(default_factory=Settings)
    workers: Workers = field(default_factory=Workers)
    namespace: str = ""
    """The only namespace to look after; "": all."""

    _informers: dict[str, Informer] = field(default_factory=dict)
    _absent: set[str] = field(default_factory=set)
    """Those of kinds that the API server did not know at the start."""

    async def run(self, ready: asyncio.Event | None = None) -> None:
        """Look after VMs, VMIs and nodes until cancelled; ``ready`` is set when work begins.

        Raises:
            ExceptionGroup: a part of it failed.
        """
        caches = await self._caches()
        recorder = EventRecorder(self.client, COMPONENT, os.uname().nodename)
        vm_queue, vmi_queue = WorkQueue("virt-controller-vm"), WorkQueue("virt-controller-vmi")
        node_queue = WorkQueue("virt-controller-node")
        api = FreshApi(self.client, observe=self._observe)
        configuration = _Configuration(self.settings)
        self._informers["kubevirts"].add_handler(configuration.take)

        def world(queue: WorkQueue) -> World:
            return World(api, caches, recorder, queue, settings=lambda: configuration.settings)

        machines = VirtualMachineController(world(vm_queue))
        instances = VirtualMachineInstanceController(world(vmi_queue))
        nodes = NodeController(world(node_queue))
        self._connect(machines, vm_queue, instances, vmi_queue, node_queue)
        synced = asyncio.Event()
        async with asyncio.TaskGroup() as group:
            group.create_task(recorder.run())
            present = [one for name, one in self._informers.items() if name not in self._absent]
            group.create_task(run_informers(*present, ready=synced))
            for name in self._absent:
                group.create_task(self._follow_later(self._informers[name]))
            await synced.wait()
            group.create_task(work(vm_queue, self.workers.vms, machines.reconcile))
            group.create_task(work(vmi_queue, self.workers.vmis, instances.reconcile))
            group.create_task(work(node_queue, self.workers.nodes, nodes.reconcile))
            if ready is not None:
                ready.set()

    async def _caches(self) -> Caches:
        return Caches(
            vms=self._watched(resources.VIRTUAL_MACHINES, indices.MACHINES),
            vmis=self._watched(resources.VIRTUAL_MACHINE_INSTANCES, indices.INSTANCES),
            pods=self._watched(resources.PODS, indices.PODS, label_selector=APP_LABEL),
            revisions=self._watched(resources.CONTROLLER_REVISIONS, indices.REVISIONS),
            claims=self._watched(resources.PERSISTENT_VOLUME_CLAIMS, indices.CLAIMS),
            data_volumes=await self._watched_if_there(resources.DATA_VOLUMES),
            migrations=await self._watched_if_there(MIGRATIONS, indices.MIGRATIONS),
            storage_classes=self._watched(STORAGE_CLASSES),
            nodes=self._watched(resources.NODES),
            quotas=self._watched(resources.RESOURCE_QUOTAS, indices.QUOTAS),
            namespaces=self._watched(resources.NAMESPACES),
        )

    def _watched(
        self, resource: Resource, indexers: Mapping[str, Indexer] | None = None, label_selector: str = ""
    ) -> Store:
        if "kubevirts" not in self._informers:
            self._informers["kubevirts"] = Informer(self.client, resources.KUBEVIRTS)
        namespace = self.namespace if resource.namespaced else ""
        informer = Informer(
            self.client, resource, namespace=namespace, indexers=indexers, label_selector=label_selector
        )
        self._informers[resource.plural] = informer
        return informer.store

    async def _watched_if_there(
        self, resource: Resource, indexers: Mapping[str, Indexer] | None = None
    ) -> Store:
        """What another project defines is watched once that is installed."""
        store = self._watched(resource, indexers)
        if not await self._is_there(resource):
            self._absent.add(resource.plural)
        return store

    async def _is_there(self, resource: Resource) -> bool:
        try:
            await self.client.call("GET", resource.path(), parameters={"limit": "1"})
        except NotFound:
            return False
        return True

    async def _follow_later(self, informer: Informer) -> None:
        while True:
            await asyncio.sleep(RECHECK)
            try:
                if await self._is_there(informer.resource):
                    break
            except KubeError as error:
                logger.debug("%s: %s", informer.resource, error)
        logger.info("%s: installed, and followed from now on", informer.resource)
        await informer.run()

    def _observe(self, resource: Resource, obj: Object) -> None:
        """Show a write's answer to the cache before the watch does."""
        if informer := self._informers.get(resource.plural):
            informer.observe(obj)

    def _connect(
        self,
        machines: VirtualMachineController,
        vm_queue: WorkQueue,
        instances: VirtualMachineInstanceController,
        vmi_queue: WorkQueue,
        node_queue: WorkQueue,
    ) -> None:
        told = self._informers
        vm = MachineHandlers(machines, told["virtualmachines"].store, vm_queue)
        vmi = InstanceHandlers(instances, told["virtualmachineinstances"].store, vmi_queue.add)
        node = NodeHandlers(node_queue.add, node_queue.add_after)
        handlers: dict[str, tuple[Any, ...]] = {
            "virtualmachines": (vm.on_vm, vmi.on_vm),
            "virtualmachineinstances": (vm.on_vmi, vmi.on_vmi, node.on_vmi),
            "pods": (vmi.on_pod,),
            "nodes": (node.on_node,),
            "persistentvolumeclaims": (vm.on_claim, vmi.on_claim),
            "datavolumes": (vm.on_data_volume, vmi.on_data_volume),
        }
        for name, mine in handlers.items():
            for handler in mine if name in told else ():
                told[name].add_handler(handler)
