"""The controllers against a real API server; scheduler, kubelet and node are played by the test."""

from __future__ import annotations

import asyncio
import copy
from collections import Counter
from typing import Any

import pytest

from kvnode.controller.manager import Manager
from kvnode.kube.client import Client
from kvnode.kube.errors import ApiError, Conflict, NotFound
from kvnode.kube.objects import Object, timestamp, utc_now
from kvnode.kube.resources import PODS, VIRTUAL_MACHINE_INSTANCES, VIRTUAL_MACHINES
from tests.cluster.cluster import Cluster
from tests.controller.objects import SPEC
from tests.kube.loops import real_time
from tests.kube.support import background, client_of

pytestmark = pytest.mark.cluster


class Counted(Client):
    """A client that keeps count of what it writes, and of what is refused."""

    def __init__(self, *arguments: Any, **more: Any) -> None:
        super().__init__(*arguments, **more)
        self.calls: Counter[str] = Counter()
        self.refused: Counter[str] = Counter()

    async def call(self, method: str, path: str, **more: Any) -> Object:
        """Make a call, and count it if it writes."""
        words = f"{method} {path.partition('/namespaces/')[2].split('/')[1:2]}"
        if method != "GET":
            self.calls[words] += 1
        try:
            return await super().call(method, path, **more)
        except ApiError:
            if method != "GET":
                self.refused[words] += 1
            raise

    async def at_rest(self) -> None:
        """Wait until it has written nothing for half a second: what comes next meets no write under way."""
        before = -1
        while before != (before := self.calls.total()):
            await asyncio.sleep(0.5)


def machine(namespace: str, name: str, strategy: str = "Always") -> Object:
    template = {"metadata": {"labels": {"vm": name}}, "spec": copy.deepcopy(SPEC)}
    return {
        "apiVersion": "kubevirt.io/v1",
        "kind": "VirtualMachine",
        "metadata": {"name": name, "namespace": namespace},
        "spec": {"runStrategy": strategy, "template": template},
    }


async def eventually(check: Any, seconds: float = 90.0) -> Any:
    """Ask until there is an answer."""
    async with asyncio.timeout(seconds):
        while True:
            try:
                if found := await check():
                    return found
            except NotFound:
                pass
            await asyncio.sleep(0.05)


class Played:
    """What others than the controllers do."""

    def __init__(self, client: Client, namespace: str, name: str) -> None:
        self.client, self.namespace, self.name = client, namespace, name

    async def pod(self) -> Object | None:
        found = await self.client.list_all(PODS, self.namespace, label_selector=f"vm={self.name}")
        return found[0] if found else None

    async def vm(self, word: str, *, ready: bool = False) -> Object:
        async def check() -> Object | None:
            found = await self.client.get(VIRTUAL_MACHINES, self.name, self.namespace)
            status = found.get("status") or {}
            same = status.get("printableStatus") == word and bool(status.get("ready")) is ready
            return found if same else None

        found: Object = await eventually(check)
        return found

    async def vmi(self, phase: str) -> Object:
        async def check() -> Object | None:
            found = await self.client.get(VIRTUAL_MACHINE_INSTANCES, self.name, self.namespace)
            return found if (found.get("status") or {}).get("phase") == phase else None

        found: Object = await eventually(check)
        return found

    async def start_pod(self) -> None:
        """Schedule it and run its containers."""
        pod = await eventually(self.pod)
        name = pod["metadata"]["name"]
        target = {"apiVersion": "v1", "kind": "Node", "name": "node01"}
        binding = {"metadata": {"name": name, "namespace": self.namespace}, "target": target}
        await self.client.create(PODS, binding, subresource="binding")
        await eventually(lambda: self._run_pod(name))

    async def _run_pod(self, name: str) -> bool:
        pod = await self.client.get(PODS, name, self.namespace)
        running = {"state": {"running": {}}, "ready": True, "started": True}
        ordinary = {"image": "x", "imageID": "x", "restartCount": 0, **running}
        held = pod["status"].get("conditions") or []
        pod["status"] |= {
            "phase": "Running",
            "containerStatuses": [{"name": one["name"], **ordinary} for one in pod["spec"]["containers"]],
            "conditions": [
                *(one for one in held if one["type"] != "Ready"),
                {"type": "Ready", "status": "True"},
            ],
        }
        try:
            await self.client.replace(PODS, pod, subresource="status")
        except Conflict:
            return False  # the controllers wrote a condition meanwhile
        return True

    async def become(self, phase: str) -> None:
        """Be the node's agent: the domain is in that phase."""
        seen = {"phase": phase, "phaseTransitionTimestamp": timestamp(utc_now())}
        patch: list[Object] = [
            {"op": "replace", "path": "/status/phase", "value": phase},
            {"op": "add", "path": "/status/phaseTransitionTimestamps/-", "value": seen},
        ]
        await self.client.patch(VIRTUAL_MACHINE_INSTANCES, self.name, self.namespace, patch)

    async def end_pod(self) -> None:
        """Be the kubelet of a pod that is to go."""

        async def check() -> bool:
            pod = await self.pod()
            if pod and pod["metadata"].get("deletionTimestamp"):
                await self.client.delete(PODS, pod["metadata"]["name"], self.namespace, grace_seconds=0)
            return pod is None

        await eventually(check)


@real_time
async def test_life_of_a_vm(control_plane: Cluster, namespace: str) -> None:
    async with (
        client_of(control_plane) as user,
        Counted(user.configuration) as client,
        background(Manager(client, namespace=namespace).run()),
    ):
        played = Played(user, namespace, "testvm")
        await user.create(VIRTUAL_MACHINES, machine(namespace, "testvm"))
        await played.vm("Starting")
        await played.start_pod()
        await played.vmi("Scheduled")
        await played.become("Running")
        await played.vm("Running", ready=True)
        first = (await played.vmi("Running"))["metadata"]["uid"]

        await played.become("Failed")  # the guest crashed: it is deleted, and made anew

        async def restarted() -> bool:
            found = await user.get(VIRTUAL_MACHINE_INSTANCES, "testvm", namespace)
            return bool(found["metadata"]["uid"] != first)

        await eventually(restarted)

        await user.delete(VIRTUAL_MACHINES, "testvm", namespace)

        async def gone() -> bool:
            try:
                await user.get(VIRTUAL_MACHINES, "testvm", namespace)
            except NotFound:
                return True
            return False

        await eventually(gone)


@real_time
async def test_writes_of_a_start(control_plane: Cluster, namespace: str) -> None:
    async with client_of(control_plane) as user, Counted(user.configuration) as client:
        async with background(Manager(client, namespace=namespace).run()):
            played = Played(user, namespace, "counted")
            await user.create(VIRTUAL_MACHINES, machine(namespace, "counted"))
            await played.vm("Starting")
            await client.at_rest()
            await played.start_pod()
            await played.vmi("Scheduled")
            await client.at_rest()
            await played.become("Running")
            await played.vm("Running", ready=True)
            await eventually(lambda: asyncio.sleep(0, client.calls["POST ['events']"] == 2))
            await client.at_rest()
        assert not client.refused
        made = {words: count for words, count in client.calls.items() if words.startswith("POST")}
        assert made.pop("POST ['events']") == 2
        assert set(made.values()) == {1}, made  # a revision, a VMI, a pod
        assert client.calls.total() <= 13, client.calls
