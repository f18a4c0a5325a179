"""Whose is the VMI of that name, and whose are the DataVolumes (``controller_ref_manager.go:149-410``)."""

from __future__ import annotations

from kvnode.api.names import VIRTUAL_MACHINE
from kvnode.controller.meta import controller_reference, name_of, namespace_of, spec_of
from kvnode.controller.ports import World
from kvnode.kube.client import PatchType
from kvnode.kube.errors import NotFound
from kvnode.kube.objects import Object, controller_of, is_deleting, uid_of
from kvnode.kube.resources import DATA_VOLUMES, VIRTUAL_MACHINE_INSTANCES, VIRTUAL_MACHINES, Resource


class GoneError(Exception):
    """The VM in the cache is no more, or is being deleted."""


async def claimed_instance(world: World, vm: Object, vmi: Object | None) -> Object | None:
    """The VMI if it is the VM's, or is nobody's and can be made the VM's; None if it is somebody else's.

    Raises:
        GoneError: the server does not know this VM any more.
        ApiError: the server refused.
    """
    if vmi is None or not await _Claims(world, vm).claim(VIRTUAL_MACHINE_INSTANCES, vmi):
        return None
    return vmi


async def adopt_data_volumes(world: World, vm: Object) -> None:
    """Make the DataVolumes of the VM's templates its own.

    Raises:
        GoneError: the server does not know this VM any more.
        ApiError: the server refused.
    """
    claims = _Claims(world, vm)
    for template in spec_of(vm).get("dataVolumeTemplates") or ():
        name = (template.get("metadata") or {}).get("name")
        found = world.caches.data_volumes.get(f"{namespace_of(vm)}/{name}")
        if found is not None:
            await claims.claim(DATA_VOLUMES, found)


class _Claims:
    """The claims of one VM; the server is asked once whether it still is there."""

    def __init__(self, world: World, vm: Object) -> None:
        self._world = world
        self._vm = vm
        self._is_alive = False

    async def claim(self, resource: Resource, obj: Object) -> bool:
        """Whether the object is the VM's now."""
        owner = controller_of(obj)
        if owner is not None:
            return owner.get("uid") == uid_of(self._vm)
        if is_deleting(self._vm) or is_deleting(obj):
            return False
        await self._check_alive()
        reference = controller_reference(self._vm, VIRTUAL_MACHINE)
        patch = {"metadata": {"ownerReferences": [reference], "uid": uid_of(obj)}}
        try:
            await self._world.api.patch(resource, name_of(obj), namespace_of(obj), patch, PatchType.MERGE)
        except NotFound:
            return False
        return True

    async def _check_alive(self) -> None:
        if self._is_alive:
            return
        name, namespace = name_of(self._vm), namespace_of(self._vm)
        fresh = await self._world.api.get(VIRTUAL_MACHINES, name, namespace)
        if uid_of(fresh) != uid_of(self._vm):
            raise GoneError(f"VirtualMachine {namespace}/{name} was deleted and made anew")
        if is_deleting(fresh):
            raise GoneError(f"VirtualMachine {namespace}/{name} is being deleted")
        self._is_alive = True
