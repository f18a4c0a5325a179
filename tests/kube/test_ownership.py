"""Claims, on a real API server."""

from __future__ import annotations

import pytest

from kvnode.kube.client import Client
from kvnode.kube.errors import ApiError
from kvnode.kube.objects import Object, controller_of, metadata
from kvnode.kube.ownership import Claims, Disowned, controller_reference, owned_by
from kvnode.kube.resources import CONFIG_MAPS, VIRTUAL_MACHINE_INSTANCES, VIRTUAL_MACHINES
from tests.cluster.cluster import Cluster
from tests.kube.loops import real_time
from tests.kube.support import client_of, faulty, vm, vmi

pytestmark = pytest.mark.cluster


def anything(_: Object) -> bool:
    return True


def nothing(_: Object) -> bool:
    return False


async def pair(client: Client, namespace: str, owned: bool) -> tuple[Object, Object]:
    """A VirtualMachine and an instance, which is or is not its own."""
    owner = await client.create(VIRTUAL_MACHINES, vm(namespace, "a"))
    instance = vmi(namespace, "a")
    if owned:
        instance["metadata"]["ownerReferences"] = [controller_reference(owner)]
    return owner, await client.create(VIRTUAL_MACHINE_INSTANCES, instance)


def claims(client: Client, owner: Object) -> Claims:
    return Claims(client, VIRTUAL_MACHINES, owner, VIRTUAL_MACHINE_INSTANCES)


@real_time
async def test_what_is_owned_is_claimed_without_a_call(control_plane: Cluster, namespace: str) -> None:
    async with faulty(control_plane) as (server, client):
        owner, instance = await pair(client, namespace, owned=True)
        server.requests.clear()
        assert await claims(client, owner).claim([instance], anything) == [instance]
        assert server.requests == []
        assert owned_by("VirtualMachine", metadata(owner)["uid"])(instance)


@real_time
async def test_an_orphan_that_fits_is_adopted_beside_its_other_owners(
    control_plane: Cluster, namespace: str
) -> None:
    async with client_of(control_plane) as client:
        owner, instance = await pair(client, namespace, owned=False)
        other = {"apiVersion": "v1", "kind": "ConfigMap", "name": "x", "uid": "0000"}
        instance["metadata"]["ownerReferences"] = [other]
        instance = await client.replace(VIRTUAL_MACHINE_INSTANCES, instance)
        assert await claims(client, owner).claim([instance], nothing) == []
        [adopted] = await claims(client, owner).claim([instance], anything)
        assert adopted["metadata"]["ownerReferences"] == [other, controller_reference(owner)]


@real_time
async def test_an_orphan_without_owners_is_adopted(control_plane: Cluster, namespace: str) -> None:
    async with client_of(control_plane) as client:
        owner, instance = await pair(client, namespace, owned=False)
        [adopted] = await claims(client, owner).claim([instance], anything)
        assert controller_of(adopted) == controller_reference(owner)


@real_time
async def test_another_s_is_left_alone(control_plane: Cluster, namespace: str) -> None:
    async with client_of(control_plane) as client:
        owner, instance = await pair(client, namespace, owned=True)
        stranger = {**owner, "metadata": {**owner["metadata"], "uid": "another"}}
        assert await claims(client, stranger).claim([instance], anything) == []
        assert await claims(client, stranger).claim([instance], nothing) == []


@real_time
async def test_a_misfit_is_released(control_plane: Cluster, namespace: str) -> None:
    async with client_of(control_plane) as client:
        owner, instance = await pair(client, namespace, owned=True)
        assert await claims(client, owner).claim([instance], nothing) == []
        now = await client.get(VIRTUAL_MACHINE_INSTANCES, "a", namespace)
        assert controller_of(now) is None


@real_time
async def test_an_owner_that_is_going_neither_adopts_nor_releases(
    control_plane: Cluster, namespace: str
) -> None:
    async with client_of(control_plane) as client:
        owner, instance = await pair(client, namespace, owned=False)
        going = {**owner, "metadata": {**owner["metadata"], "deletionTimestamp": "2026-01-01T00:00:00Z"}}
        assert await claims(client, going).claim([instance], anything) == []
        gone = {**instance, "metadata": {**instance["metadata"], "deletionTimestamp": "2026-01-01T00:00:00Z"}}
        assert await claims(client, owner).claim([gone], anything) == []


@pytest.mark.parametrize("fate", ["gone", "going", "another"])
@real_time
async def test_a_stale_cache_s_owner_adopts_nothing(
    control_plane: Cluster, namespace: str, fate: str
) -> None:
    async with client_of(control_plane) as client:
        owner, instance = await pair(client, namespace, owned=False)
        if fate == "going":
            operations = [{"op": "add", "path": "/metadata/finalizers", "value": ["kubevirt.io/test"]}]
            await client.patch(VIRTUAL_MACHINES, "a", namespace, operations)
        await client.delete(VIRTUAL_MACHINES, "a", namespace)
        if fate == "another":
            await client.create(VIRTUAL_MACHINES, vm(namespace, "a"))
        with pytest.raises(Disowned):
            await claims(client, owner).claim([instance], anything)


@real_time
async def test_a_candidate_that_changed_or_went_meanwhile(control_plane: Cluster, namespace: str) -> None:
    async with client_of(control_plane) as client:
        owner, instance = await pair(client, namespace, owned=False)
        await client.delete(VIRTUAL_MACHINE_INSTANCES, "a", namespace)
        assert await claims(client, owner).claim([instance], anything) == []
        await client.create(VIRTUAL_MACHINE_INSTANCES, vmi(namespace, "a"))
        with pytest.raises(ApiError):
            await claims(client, owner).claim([instance], anything)
        now = await client.get(VIRTUAL_MACHINE_INSTANCES, "a", namespace)
        assert controller_of(now) is None
        assert await client.list_all(CONFIG_MAPS, namespace) == []
