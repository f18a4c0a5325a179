"""A node of a real API server, and its launchers, which are stood in for."""

from __future__ import annotations

import asyncio
import os
import shutil
import tempfile
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any
from unittest import mock

import pytest

from kvnode.agent import launchers
from kvnode.agent.main import Agent
from kvnode.agent.processes import Household, household_of
from kvnode.agent.settings import Settings
from kvnode.kube.client import Client, PatchType
from kvnode.kube.objects import Object
from kvnode.kube.resources import EVENTS, NODES, VIRTUAL_MACHINE_INSTANCES
from tests.agent.kubelet import Kubelet
from tests.agent.standin import StandIn
from tests.cluster.cluster import Cluster
from tests.kube.support import background, client_of

CONFIGURATION = {"developerConfiguration": {"useEmulation": True, "featureGates": ["ImageVolume"]}}
SPEC = {
    "domain": {"devices": {"autoattachPodInterface": False}, "resources": {"requests": {"memory": "64Mi"}}},
    "terminationGracePeriodSeconds": 0,
}


PATIENCE = 120.0
"""Seconds for whatever takes a moment, however busy the machine is."""


async def eventually(check: Callable[[], Awaitable[Any]], seconds: float = PATIENCE) -> Any:
    """Ask until there is an answer."""
    async with asyncio.timeout(seconds):
        while not (found := await check()):
            await asyncio.sleep(0.03)
        return found


class Node:
    """A node of a name of its own in a cluster that other tests use too."""

    def __init__(self, client: Client, namespace: str, folder: Path) -> None:
        self.client, self.namespace, self.folder = client, namespace, folder
        self.name = f"node-{namespace}"
        self.launchers: list[StandIn] = []
        self.kubelet = Kubelet(folder / "d")
        (folder / "dev").mkdir()
        self.settings = Settings(
            self.name,
            pods=folder / "p",
            private=folder / "private",
            capabilities=folder / "none",
            device_plugins=folder / "d",
            devices=folder / "dev",
            address="127.0.0.1",
            port=0,
        )

    async def vmi(self, phase: str = "Scheduled", name: str = "testvmi") -> tuple[Object, StandIn]:
        """A VMI that a controller has handed over, and its launcher, which does not listen yet."""
        obj = {
            "apiVersion": "kubevirt.io/v1",
            "kind": "VirtualMachineInstance",
            "metadata": {
                "name": name,
                "namespace": self.namespace,
                "labels": {"kubevirt.io/nodeName": self.name},
                "finalizers": ["kubevirt.io/foregroundDeleteVirtualMachine"],
            },
            "spec": SPEC,
        }
        made = await self.client.create(VIRTUAL_MACHINE_INSTANCES, obj)
        pod = f"pod-{name}"
        sockets = self.folder / "p" / pod / "volumes/kubernetes.io~empty-dir/sockets"
        sockets.mkdir(parents=True)
        status = {"phase": phase, "nodeName": self.name, "activePods": {pod: self.name}}
        made = await self.client.patch(
            VIRTUAL_MACHINE_INSTANCES, name, self.namespace, {"status": status}, PatchType.MERGE
        )
        root = self.folder / f"root-{name}"
        launcher = StandIn(self.folder / "p", root, pod, made)
        self.launchers.append(launcher)
        return made, launcher

    async def get(self, name: str = "testvmi") -> Object:
        return await self.client.get(VIRTUAL_MACHINE_INSTANCES, name, self.namespace)

    async def until(self, phase: str, name: str = "testvmi") -> Object:
        async def check() -> Object | None:
            found = await self.get(name)
            return found if found["status"].get("phase") == phase else None

        found: Object = await eventually(check)
        return found

    async def settled(self, name: str = "testvmi") -> Object:
        """The VMI, once nothing has been written for a while."""
        while True:
            found = await self.get(name)
            await asyncio.sleep(1)
            if await self.get(name) == found:
                return found

    async def events(self) -> list[tuple[str, str]]:
        found = await self.client.list_all(EVENTS, self.namespace)
        return [(one["reason"], one["type"]) for one in found]

    @asynccontextmanager
    async def agent(self) -> AsyncIterator[Agent]:
        """An agent that runs."""
        async with Client(self.client.configuration) as client:
            agent = Agent(client, self.settings, root_of=lambda _peer: self.folder / "root-testvmi")
            ready = asyncio.Event()
            with mock.patch.object(launchers, "household_of", _household_of):
                async with background(agent.run(ready)):
                    async with asyncio.timeout(PATIENCE):
                        await ready.wait()
                    yield agent


def _household_of(pid: int) -> Household:
    """Launchers in the tests' own process have none: above and below it there may be guests of other tests."""
    return Household(0, -1) if pid == os.getpid() else household_of(pid)


@pytest.fixture
def folder() -> Iterator[Path]:
    """A folder whose name leaves room for sockets."""
    made = Path(tempfile.mkdtemp(prefix="kv"))
    yield made
    shutil.rmtree(made)


@pytest.fixture(autouse=True, scope="module")
def configuration(control_plane: Cluster) -> None:
    """A cluster whose nodes need no KVM."""
    path = "/apis/kubevirt.io/v1/namespaces/default/kubevirts/kubevirt?fieldManager=agent&force=true"
    body = {
        "apiVersion": "kubevirt.io/v1",
        "kind": "KubeVirt",
        "metadata": {"name": "kubevirt"},
        "spec": {"configuration": CONFIGURATION},
    }
    control_plane.request("PATCH", path, body, "application/apply-patch+yaml")


@asynccontextmanager
async def node_of(cluster: Cluster, namespace: str, folder: Path) -> AsyncIterator[Node]:
    async with client_of(cluster) as client:
        node = Node(client, namespace, folder)
        await client.create(NODES, {"apiVersion": "v1", "kind": "Node", "metadata": {"name": node.name}})
        await node.kubelet.start()
        try:
            yield node
        finally:
            for launcher in node.launchers:
                await launcher.stop()
            await node.kubelet.stop()
