"""A namespace that is deleted with machines in it, on a real API server; its controller is played by the test."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import Any

import pytest

from kvnode.controller.manager import Manager
from kvnode.kube.client import Client
from kvnode.kube.errors import NotFound
from kvnode.kube.resources import (
    CONTROLLER_REVISIONS,
    EVENTS,
    NAMESPACES,
    PERSISTENT_VOLUME_CLAIMS,
    PODS,
    VIRTUAL_MACHINE_INSTANCES,
    VIRTUAL_MACHINES,
    Resource,
)
from tests.cluster.cluster import Cluster
from tests.controller.standin import StandIn
from tests.controller.test_manager import Played, eventually, machine
from tests.kube.loops import minutes
from tests.kube.support import background, client_of

pytestmark = pytest.mark.cluster

KINDS = (PODS, CONTROLLER_REVISIONS, VIRTUAL_MACHINE_INSTANCES, VIRTUAL_MACHINES, PERSISTENT_VOLUME_CLAIMS)


async def take_away(user: Client, namespace: str, resource: Resource) -> None:
    """Be the namespace's controller, for one kind."""
    for one in await user.list_all(resource, namespace):
        with suppress(NotFound):
            await user.delete(resource, one["metadata"]["name"], namespace)


@minutes(3)
@pytest.mark.parametrize("order", [KINDS, KINDS[::-1]], ids=["machines-late", "machines-early"])
async def test_nothing_is_left_of_it(
    control_plane: Cluster, namespace: str, order: tuple[Resource, ...]
) -> None:
    async with (
        client_of(control_plane) as user,
        background(Manager(user, namespace=namespace).run(), StandIn(user, namespace).run()),
    ):
        for name, strategy in (("always", "Always"), ("rerun", "RerunOnFailure"), ("once", "Once")):
            await user.create(VIRTUAL_MACHINES, machine(namespace, name, strategy))
        waiting: Any = machine(namespace, "waiting")
        volume = {"name": "root", "persistentVolumeClaim": {"claimName": "not-there"}}
        waiting["spec"]["template"]["spec"]["volumes"] = [volume]
        await user.create(VIRTUAL_MACHINES, waiting)
        for name in ("always", "rerun", "once"):
            await Played(user, namespace, name).vm("Running", ready=True)
        await Played(user, namespace, "waiting").vm("ErrorPvcNotFound")

        await user.delete(NAMESPACES, namespace)
        for resource in order:
            await take_away(user, namespace, resource)
            await asyncio.sleep(1)  # the controllers try to put back what is missing

        async def empty() -> bool:
            left = [len(await user.list_all(one, namespace)) for one in KINDS]
            return left == [0] * len(KINDS)

        async def emptied() -> bool:
            for resource in order:
                await take_away(user, namespace, resource)
            return await empty()

        await eventually(emptied, 60)
        await asyncio.sleep(1)
        assert await empty()
        assert await user.list_all(EVENTS, namespace)  # told of until then; what came later was refused
