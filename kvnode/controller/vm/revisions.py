"""The ControllerRevision that keeps what a VM's VMI was started from (``vm.go:1694-1865``)."""

from __future__ import annotations

import copy
from typing import Any

from kvnode.api.names import VIRTUAL_MACHINE
from kvnode.controller.indices import CONTROLLER
from kvnode.controller.meta import at, controller_reference, name_of, namespace_of, spec_of
from kvnode.controller.ports import World
from kvnode.kube.objects import Object, metadata, uid_of
from kvnode.kube.resources import CONTROLLER_REVISIONS


def revision_prefix(vm: Object) -> str:
    """What the names of a VM's start revisions begin with."""
    return f"revision-start-vm-{uid_of(vm)}"


def generation_of_name(name: str) -> int | None:
    """The generation at the end of a revision's name; None if there is none."""
    _, dash, text = name.rpartition("-")
    return int(text) if dash and text.isascii() and text.isdigit() else None


def start_revisions(world: World, vm: Object) -> list[Object]:
    """The start revisions of a VM that the cache has."""
    found = world.caches.revisions.by(CONTROLLER, uid_of(vm))
    return [one for one in found if name_of(one).startswith(revision_prefix(vm))]


def started_spec(world: World, vm: Object) -> dict[str, Any] | None:
    """The spec that the VM was last started with; None if that is not kept."""
    newest, spec = 0, None
    for revision in start_revisions(world, vm):
        generation = generation_of_name(name_of(revision)) or 0
        if generation > newest:
            newest, spec = generation, at(revision, "data", "spec")
    return spec


def revision_named(world: World, vm: Object, name: str) -> Object | None:
    """The start revision of that name."""
    return next((one for one in start_revisions(world, vm) if name_of(one) == name), None)


async def ensure_start_revision(world: World, vm: Object) -> str:
    """Keep the VM's spec of now as its only start revision; the answer is that one's name.

    Raises:
        ApiError: the server refused.
    """
    generation = int(metadata(vm).get("generation") or 0)
    name = f"{revision_prefix(vm)}-{generation}"
    is_there = False
    for revision in start_revisions(world, vm):
        if int(revision.get("revision") or 0) == generation:
            is_there = True
        else:
            await world.api.delete(CONTROLLER_REVISIONS, name_of(revision), namespace_of(vm))
    if not is_there:
        await world.api.create(CONTROLLER_REVISIONS, _revision(vm, name, generation))
    return name


def _revision(vm: Object, name: str, generation: int) -> Object:
    return {
        "apiVersion": "apps/v1",
        "kind": "ControllerRevision",
        "metadata": {
            "name": name,
            "namespace": namespace_of(vm),
            "ownerReferences": [controller_reference(vm, VIRTUAL_MACHINE)],
        },
        "data": {"spec": copy.deepcopy(spec_of(vm))},
        "revision": generation,
    }
