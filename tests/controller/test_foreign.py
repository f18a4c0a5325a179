"""Others' objects in the way, names and annotations as long as they can be: what is told, and that the rest goes on."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from kvnode.api.quantity import Quantity
from kvnode.controller.manager import STORAGE_CLASSES, Manager
from kvnode.kube.client import Client, PatchType
from kvnode.kube.errors import Forbidden, NotFound
from kvnode.kube.objects import Object
from kvnode.kube.resources import (
    CONTROLLER_REVISIONS,
    PODS,
    RESOURCE_QUOTAS,
    VIRTUAL_MACHINE_INSTANCES,
    VIRTUAL_MACHINES,
)
from tests.cluster.cluster import Cluster
from tests.controller.standin import StandIn
from tests.controller.test_manager import eventually, machine
from tests.controller.test_process import many_ready, ready
from tests.kube.loops import minutes, real_time
from tests.kube.support import background, client_of, vmi

pytestmark = pytest.mark.cluster

HELD = "example.test/held"


async def failure(user: Client, namespace: str, name: str) -> str:
    """Wait until a VM says why it does not start."""

    async def check() -> str:
        vm = await user.get(VIRTUAL_MACHINES, name, namespace)
        found = (vm.get("status") or {}).get("conditions") or []
        return next((one["message"] for one in found if one["type"] == "Failure"), "")

    text: str = await eventually(check)
    return text


async def unsynchronized(user: Client, namespace: str, name: str) -> str:
    """Wait until a VMI says why it has no pod, in its own conditions and in its VM's."""

    async def check() -> str:
        found = [
            condition["message"]
            for resource in (VIRTUAL_MACHINES, VIRTUAL_MACHINE_INSTANCES)
            for condition in (await user.get(resource, name, namespace))["status"].get("conditions") or ()
            if condition["type"] == "Synchronized"
        ]
        return str(found[0]) if len(found) == 2 and found[0] == found[1] else ""

    text: str = await eventually(check)
    return text


@asynccontextmanager
async def a_default_class(user: Client) -> AsyncIterator[None]:
    """Have a default storage class."""
    default = {"storageclass.kubernetes.io/is-default-class": "true"}
    made: Object = {
        "apiVersion": "storage.k8s.io/v1",
        "kind": "StorageClass",
        "metadata": {"name": "foreign", "annotations": default},
        "provisioner": "example.test/none",
    }
    await user.create(STORAGE_CLASSES, made)
    try:
        yield
    finally:
        await user.delete(STORAGE_CLASSES, "foreign")


async def gone(user: Client, namespace: str, name: str) -> bool:
    """Whether neither the VM nor its instance is there."""
    for resource in (VIRTUAL_MACHINES, VIRTUAL_MACHINE_INSTANCES):
        try:
            await user.get(resource, name, namespace)
        except NotFound:
            continue
        return False
    return True


def owned(obj: Object, kind: str, name: str, uid: str) -> Object:
    """The object, said to be controlled by another."""
    reference = {"apiVersion": "kubevirt.io/v1", "kind": kind, "name": name, "uid": uid, "controller": True}
    obj["metadata"]["ownerReferences"] = [reference]
    return obj


@real_time
async def test_an_instance_of_another_is_not_taken(control_plane: Cluster, namespace: str) -> None:
    """Its owner reference names the VM, with the UID of one that never was."""
    async with client_of(control_plane) as user, background(Manager(user, namespace=namespace).run()):
        forged = owned(vmi(namespace, "taken"), "VirtualMachine", "taken", "no-such-uid")
        theirs = await user.create(VIRTUAL_MACHINE_INSTANCES, forged)
        await user.create(VIRTUAL_MACHINES, machine(namespace, "taken"))
        assert "already exists" in await failure(user, namespace, "taken")
        await user.delete(VIRTUAL_MACHINES, "taken", namespace)

        async def vm_gone() -> bool:
            return not await user.list_all(VIRTUAL_MACHINES, namespace)

        await eventually(vm_gone)
        found = await user.get(VIRTUAL_MACHINE_INSTANCES, "taken", namespace)
        assert found["metadata"]["uid"] == theirs["metadata"]["uid"]
        assert found["metadata"]["ownerReferences"] == theirs["metadata"]["ownerReferences"]
        assert not found["metadata"].get("deletionTimestamp")


@real_time
async def test_a_revision_of_another_is_in_the_way(control_plane: Cluster, namespace: str) -> None:
    async with client_of(control_plane) as user, background(Manager(user, namespace=namespace).run()):
        made = await user.create(VIRTUAL_MACHINES, machine(namespace, "vm", "Halted"))
        start: Object = {"spec": {"runStrategy": "Always"}}
        uid = made["metadata"]["uid"]
        for generation in range(1, 5):
            revision: Object = {
                "apiVersion": "apps/v1",
                "kind": "ControllerRevision",
                "metadata": {"name": f"revision-start-vm-{uid}-{generation}", "namespace": namespace},
                "data": {"spec": "another's"},
                "revision": generation,
            }
            await user.create(CONTROLLER_REVISIONS, revision)
        await user.patch(VIRTUAL_MACHINES, "vm", namespace, start, PatchType.MERGE)
        assert "already exists" in await failure(user, namespace, "vm")
        for one in await user.list_all(CONTROLLER_REVISIONS, namespace):
            assert one["data"] == {"spec": "another's"}
            await user.delete(CONTROLLER_REVISIONS, one["metadata"]["name"], namespace)
        async with background(StandIn(user, namespace).run()):
            await many_ready(user, namespace, 1)


@real_time
async def test_a_pod_that_only_looks_like_ours(control_plane: Cluster, namespace: str) -> None:
    """It has the label and the name of a launcher's, and a VMI of that name, but another UID, for an owner."""
    async with client_of(control_plane) as user, background(Manager(user, namespace=namespace).run()):
        labels = {"kubevirt.io": "virt-launcher", "vm.kubevirt.io/name": "vm"}
        pod: Object = {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {"name": "virt-launcher-vm-abcde", "namespace": namespace, "labels": labels},
            "spec": {"containers": [{"name": "compute", "image": "example.test/other"}]},
        }
        theirs = await user.create(PODS, owned(pod, "VirtualMachineInstance", "vm", "no-such-uid"))
        nodes = StandIn(user, namespace)
        async with background(nodes.run()):
            await user.create(VIRTUAL_MACHINES, machine(namespace, "vm"))
            await many_ready(user, namespace, 1)
            assert len(nodes.pods) == 2
            await user.delete(VIRTUAL_MACHINES, "vm", namespace)
            await eventually(lambda: gone(user, namespace, "vm"))
        left = await user.list_all(PODS, namespace)
        assert [one["metadata"]["uid"] for one in left] == [theirs["metadata"]["uid"]]


@real_time
async def test_finalizers_of_others(control_plane: Cluster, namespace: str) -> None:
    """All go when the others let go; ours are not waited for then."""
    async with client_of(control_plane) as user, background(Manager(user, namespace=namespace).run()):
        held: Object = {"metadata": {"finalizers": [HELD]}}
        vm = machine(namespace, "vm")
        vm["metadata"]["finalizers"] = [HELD]
        async with background(StandIn(user, namespace).run()):
            await user.create(VIRTUAL_MACHINES, vm)
            await many_ready(user, namespace, 1)
            add = [{"op": "add", "path": "/metadata/finalizers/-", "value": HELD}]
            await user.patch(VIRTUAL_MACHINE_INSTANCES, "vm", namespace, add)
            await user.delete(VIRTUAL_MACHINES, "vm", namespace)

            async def only_theirs(resource: Any) -> bool:
                found = await user.get(resource, "vm", namespace)
                return bool(found["metadata"]["finalizers"] == [HELD])

            async def no_pods() -> bool:
                return not await user.list_all(PODS, namespace)

            await eventually(no_pods)
            await eventually(lambda: only_theirs(VIRTUAL_MACHINE_INSTANCES))
            held = {"metadata": {"finalizers": None}}
            await user.patch(VIRTUAL_MACHINE_INSTANCES, "vm", namespace, held, PatchType.MERGE)
            await eventually(lambda: only_theirs(VIRTUAL_MACHINES))
            await user.patch(VIRTUAL_MACHINES, "vm", namespace, held, PatchType.MERGE)
            await eventually(lambda: gone(user, namespace, "vm"))


@minutes(2)
async def test_as_long_as_can_be(control_plane: Cluster, namespace: str) -> None:
    """What cannot be made is told of; a name too long for a label is none for a VM."""
    longest, longer, keeps = "v" * 63, "w" * 80, "t" * 80
    made = {name: machine(namespace, name) for name in (longest, longer, keeps, "huge", "full", "beside")}
    for name in (longer, keeps):
        made[name]["spec"]["template"]["metadata"]["labels"] = {}
    for name, length in (("huge", 200_000), ("full", 256 * 1024 - 20)):
        made[name]["spec"]["template"]["metadata"]["annotations"] = {"example.test/a": "x" * length}
    made[keeps]["spec"]["template"]["spec"]["domain"]["devices"]["tpm"] = {"persistent": True}
    async with client_of(control_plane) as user:
        nodes = StandIn(user, namespace)
        manager = Manager(user, namespace=namespace)
        async with a_default_class(user), background(nodes.run(), manager.run()):
            for one in made.values():
                await user.create(VIRTUAL_MACHINES, one)

            async def all_ready() -> bool:
                return {longest, longer, "huge", "beside"} <= set(await ready(user, namespace))

            await eventually(all_ready, 180)
            assert "metadata.annotations: Too long" in await failure(user, namespace, "full")
            assert "must be no more than 63 bytes" in await unsynchronized(user, namespace, keeps)
    assert nodes.twice() == []


@real_time
async def test_a_quota_of_limits(control_plane: Cluster, namespace: str) -> None:
    """The API server takes no pod without limits where a quota has them: ours has them there, and only there."""
    async with client_of(control_plane) as user:
        hard = {"limits.memory": "100Gi", "limits.cpu": "100"}
        quota: Object = {
            "apiVersion": "v1",
            "kind": "ResourceQuota",
            "metadata": {"name": "limits", "namespace": namespace},
            "spec": {"hard": hard},
        }
        made = await user.create(RESOURCE_QUOTAS, quota)
        # Nobody fills the status of a quota in a control plane without its controllers; admission goes by it.
        made["status"] = {"hard": hard, "used": {"limits.memory": "0", "limits.cpu": "0"}}
        await user.replace(RESOURCE_QUOTAS, made, subresource="status")

        async def refused() -> bool:
            pod: Object = {
                "apiVersion": "v1",
                "kind": "Pod",
                "metadata": {"generateName": "without-", "namespace": namespace},
                "spec": {"containers": [{"name": "x", "image": "example.test/x"}]},
            }
            try:
                await user.create(PODS, pod)
            except Forbidden as error:
                return "limits.memory" in str(error)
            return False

        await eventually(refused)
        await user.call("DELETE", PODS.path(namespace))
        nodes = StandIn(user, namespace)
        async with background(nodes.run(), Manager(user, namespace=namespace).run()):
            await user.create(VIRTUAL_MACHINES, machine(namespace, "vm"))
            await many_ready(user, namespace, 1)
        (pod,) = await user.list_all(PODS, namespace)
        for container in (*pod["spec"]["containers"], *(pod["spec"].get("initContainers") or ())):
            assert {"memory", "cpu"} <= set(container["resources"]["limits"]), container["name"]
        (compute,) = [one for one in pod["spec"]["containers"] if one["name"] == "compute"]
        memory = {key: Quantity(compute["resources"][key]["memory"]) for key in ("requests", "limits")}
        assert memory["limits"].value == 2 * memory["requests"].value
