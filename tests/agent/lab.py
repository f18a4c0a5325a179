"""A node whose API server, disk or launchers fail, and what can be seen of it from outside."""

from __future__ import annotations

import asyncio
import contextlib
import json
import shutil
import sys
import tempfile
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from kvnode.agent.main import Agent
from kvnode.kube.client import Client, PatchType
from kvnode.kube.config import Configuration
from kvnode.kube.objects import Object, metadata
from kvnode.kube.resources import NODES, VIRTUAL_MACHINE_INSTANCES
from kvnode.kube.watch import watch
from tests.agent.node import PATIENCE, SPEC, Node, eventually
from tests.agent.remote import SOCKETS, Remote
from tests.cluster.cluster import Cluster
from tests.kube.faults import FaultyServer
from tests.kube.support import background, client_of

ENDINGS = {"kill", "shutdown", "delete"}


class History:
    """All versions of the VMIs of a namespace, as another client sees them."""

    def __init__(self, client: Client, namespace: str) -> None:
        self._client, self._namespace = client, namespace
        self.versions: list[Object] = []

    @asynccontextmanager
    async def kept(self) -> AsyncIterator[History]:
        """Keep it."""
        pages = [page async for page in self._client.pages(VIRTUAL_MACHINE_INSTANCES, self._namespace)]
        async with background(self._follow(str(metadata(pages[-1])["resourceVersion"]))):
            yield self

    async def _follow(self, version: str) -> None:
        while True:  # a server may end a watch at any time
            events = watch(
                self._client, VIRTUAL_MACHINE_INSTANCES, version, namespace=self._namespace, seconds=900
            )
            async with contextlib.aclosing(events):
                async for event in events:
                    version = str(metadata(event.object)["resourceVersion"])
                    if event.type in ("ADDED", "MODIFIED"):
                        self.versions.append(event.object)

    async def reaches(self, version: Object) -> None:
        """Wait until it has a version that was read: what a watch tells comes later than what is asked for."""
        about = metadata(version)
        wanted = (about["uid"], about["resourceVersion"])
        await until(lambda: wanted in [_identity(one) for one in reversed(self.versions)])

    def status(self, name: str = "testvmi") -> Object:
        """A VMI's status as it was told last; empty before."""
        return next(
            (one.get("status") or {} for one in reversed(self.versions) if metadata(one)["name"] == name), {}
        )

    def phases(self, name: str = "testvmi") -> list[str]:
        """The phases of a VMI, each as often as it came into it."""
        found: list[str] = []
        for one in self.versions:
            phase = (one.get("status") or {}).get("phase")
            if metadata(one)["name"] == name and phase and found[-1:] != [phase]:
                found.append(phase)
        return found


def _identity(version: Object) -> tuple[str, str]:
    return metadata(version)["uid"], metadata(version)["resourceVersion"]


class Lab(Node):
    """A node with launchers that are processes of their own, behind a proxy that makes faults."""

    def __init__(self, client: Client, namespace: str, folder: Path, server: FaultyServer) -> None:
        super().__init__(client, namespace, folder)
        self.server = server
        self.history = History(client, namespace)
        self.remotes: list[Remote] = []
        self.inside: list[str] = []
        """The command that launchers are run by."""

    async def launch(
        self, name: str = "testvmi", phase: str = "Scheduled", spec: Any = None, *, failure: str = ""
    ) -> Remote:
        """A VMI and its launcher, which listens, and answers Syncs with ``failure``."""
        obj = {
            "apiVersion": "kubevirt.io/v1",
            "kind": "VirtualMachineInstance",
            "metadata": {"name": name, "namespace": self.namespace},
            "spec": spec or SPEC,
        }
        made = await self.client.create(VIRTUAL_MACHINE_INSTANCES, obj)
        pod = f"p-{name}"
        (self.folder / "p" / pod / SOCKETS).mkdir(parents=True)
        remote = Remote(self.folder / "p", self.folder / f"r-{name}", pod, made, self.inside)
        self.remotes.append(remote)
        await remote.start()
        await remote.do("say", "failure", failure)
        # As the controller hands it over.
        patch = {
            "metadata": {"labels": {"kubevirt.io/nodeName": self.name}},
            "status": {"phase": phase, "nodeName": self.name, "activePods": {pod: self.name}},
        }
        await self.client.patch(VIRTUAL_MACHINE_INSTANCES, name, self.namespace, patch, PatchType.MERGE)
        return remote

    async def run(self, name: str = "testvmi") -> Remote:
        """The same, brought up by the agent that runs."""
        remote = await self.launch(name)
        await called(remote, "sync")
        await remote.become("Running", "Unknown")
        await self.until("Running", name)
        return remote

    async def until(self, phase: str, name: str = "testvmi") -> Object:
        """Wait until a VMI is in a phase, and the history knows."""
        found = await super().until(phase, name)
        await self.history.reaches(found)
        return found

    async def remove(self, name: str = "testvmi") -> None:
        """Delete a VMI; nothing holds it."""
        await self.client.delete(VIRTUAL_MACHINE_INSTANCES, name, self.namespace)

    @asynccontextmanager
    async def agent(
        self, configuration: Configuration | None = None, **settings: Any
    ) -> AsyncIterator[Agent]:
        """An agent in this process that asks the proxy."""
        async with Client(configuration or self.server.configuration, **settings) as client:
            agent = Agent(client, self.settings)
            ready = asyncio.Event()
            async with background(agent.run(ready)):
                async with asyncio.timeout(PATIENCE):
                    await ready.wait()
                yield agent

    @asynccontextmanager
    async def process(
        self, url: str = "", inside: tuple[str, ...] = ()
    ) -> AsyncIterator[asyncio.subprocess.Process]:
        """The command itself, run by the command ``inside``; it must neither end nor tell of a fault of its own."""
        config = self.folder / "config"
        config.write_text(
            json.dumps(
                {
                    "current-context": "it",
                    "contexts": [{"name": "it", "context": {"cluster": "it"}}],
                    "clusters": [{"name": "it", "cluster": {"server": url or self.server.url}}],
                }
            )
        )
        log = self.folder / "agent.log"
        with log.open("wb") as file:
            process = await asyncio.create_subprocess_exec(
                *(*inside, sys.executable, "-m", "kvnode.cli", "agent", "--node-name", self.name),
                *("--kubeconfig", str(config), "--host", "127.0.0.1", "--port", "0"),
                *("--pods", str(self.settings.pods), "--private", str(self.settings.private)),
                *("--capabilities", str(self.settings.capabilities)),
                *("--device-plugins", str(self.settings.device_plugins)),
                stderr=file,
            )
        try:
            yield process
            assert process.returncode is None, log.read_text()
        finally:
            if process.returncode is None:
                process.kill()
            await process.wait()
        assert "Traceback" not in log.read_text()


@asynccontextmanager
async def lab(cluster: Cluster, namespace: str) -> AsyncIterator[Lab]:
    """A node with a history that is kept."""
    folder = Path(tempfile.mkdtemp(prefix=""))  # pods have long names, and sockets short ones
    async with client_of(cluster) as client, FaultyServer(cluster).running() as server:
        node = Lab(client, namespace, folder, server)
        await client.create(NODES, {"apiVersion": "v1", "kind": "Node", "metadata": {"name": node.name}})
        await node.kubelet.start()
        try:
            async with node.history.kept():
                yield node
        finally:
            for remote in node.remotes:
                await remote.stop()
            await node.kubelet.stop()
            shutil.rmtree(folder)


async def called(remote: Remote, what: str, seconds: float = PATIENCE) -> None:
    """Wait until the agent has called something."""
    await until(lambda: what in remote.calls, seconds)


async def until(condition: Callable[[], object], seconds: float = PATIENCE) -> None:
    """Wait until a condition holds."""

    async def check() -> object:
        return condition()

    await eventually(check, seconds)


def unhurt(remotes: Iterator[Remote] | list[Remote]) -> bool:
    """Whether no launcher was told to end its guest."""
    return all(not ENDINGS & set(remote.calls) for remote in remotes)
