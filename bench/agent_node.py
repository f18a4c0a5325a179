"""A node for :mod:`bench.agent_load`: its VMIs, their launchers, and `kvnode agent` in a process of its own."""

from __future__ import annotations

import asyncio
import json
import signal
import subprocess
import sys
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import aiohttp
import psutil

from kvnode.kube.client import Client, PatchType
from kvnode.kube.objects import Object
from kvnode.kube.resources import VIRTUAL_MACHINE_INSTANCES
from tests.cluster.cluster import Cluster
from tests.cluster.fixtures import make_namespace

ROOT = Path(__file__).resolve().parent.parent
NODE, OTHER = "bench-node", "other-node"
SIDE_BY_SIDE = 16
"""Creations under way at once."""
SPEC = {
    "domain": {"devices": {"autoattachPodInterface": False}, "resources": {"requests": {"memory": "64Mi"}}},
    "terminationGracePeriodSeconds": 0,
}


class AgentProcess:
    """`kvnode agent`, and what the kernel says of it (proc(5))."""

    def __init__(self, cluster: Cluster, folder: Path) -> None:
        self._cluster, self._folder = cluster, folder
        self._process: subprocess.Popen[bytes] | None = None
        self.port = 0

    def start(self) -> None:
        """Start it; it is not ready yet."""
        self.port = self.port or free_port()
        folder = self._folder
        command = [sys.executable, "-m", "kvnode.cli", "agent", "--node-name", NODE, "--host", "127.0.0.1"]
        command += ["--kubeconfig", str(self._cluster.kubeconfig), "--port", str(self.port)]
        command += ["--pods", str(folder / "p"), "--private", str(folder / "private")]
        command += ["--capabilities", str(folder / "none"), "--device-plugins", str(folder / "d")]
        with (folder / "agent.log").open("ab") as log:
            self._process = subprocess.Popen(command, stderr=log, cwd=ROOT)

    def stop(self, number: int = signal.SIGTERM) -> None:
        """End it and wait for its end."""
        process, self._process = self._process, None
        if process is not None:
            process.send_signal(number)
            process.wait()

    @property
    def pid(self) -> int:
        """Of the process that runs."""
        assert self._process is not None
        return self._process.pid

    def cpu(self) -> float:
        """Seconds of a processor so far."""
        times = psutil.Process(self.pid).cpu_times()
        return float(times.user + times.system)

    def memory(self, field: str = "VmRSS") -> float:
        """Resident size, MiB; ``VmHWM``: at its largest."""
        for line in Path(f"/proc/{self.pid}/status").read_text().splitlines():
            if line.startswith(f"{field}:"):
                return int(line.split()[1]) / 1024
        return 0.0

    async def get(self, path: str) -> tuple[int, str]:
        """What it answers over HTTP; 0 when it does not."""
        try:
            async with (
                aiohttp.ClientSession() as session,
                session.get(f"http://127.0.0.1:{self.port}{path}") as answer,
            ):
                return answer.status, await answer.text()
        except aiohttp.ClientError:
            return 0, ""


def free_port() -> int:
    """A port that nobody listens on."""
    import socket  # noqa: PLC0415

    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return int(one.getsockname()[1])


class Node:
    """The node with its VMIs and launchers."""

    def __init__(self, cluster: Cluster, client: Client, folder: Path, count: int) -> None:
        self.client, self.folder, self.count = client, folder, count
        self.namespace = make_namespace(cluster)
        self.agent = AgentProcess(cluster, folder)

    async def fill(self) -> None:
        """Create the VMIs, handed over to the node, with the folders of their pods."""
        made = await in_turns(range(self.count), lambda number: self._vmi(f"vm-{number}", NODE))
        about = [
            {**{k: one["metadata"][k] for k in ("namespace", "name", "uid")}, "pod": f"pod-{name_of(one)}"}
            for one in made
        ]
        for one in about:
            (self.folder / "p" / one["pod"] / "volumes/kubernetes.io~empty-dir/sockets").mkdir(parents=True)
        (self.folder / "launchers.json").write_text(json.dumps(about))

    async def _vmi(self, name: str, node: str) -> Object:
        obj = {
            "apiVersion": "kubevirt.io/v1",
            "kind": "VirtualMachineInstance",
            "metadata": {
                "name": name,
                "namespace": self.namespace,
                "labels": {"kubevirt.io/nodeName": node},
            },
            "spec": SPEC,
        }
        await self.client.create(VIRTUAL_MACHINE_INSTANCES, obj)
        status = {"phase": "Scheduled", "nodeName": node, "activePods": {f"pod-{name}": node}}
        return await self.client.patch(
            VIRTUAL_MACHINE_INSTANCES, name, self.namespace, {"status": status}, PatchType.MERGE
        )

    async def add_others(self, count: int) -> None:
        """Create VMIs of another node."""
        await in_turns(range(count), lambda number: self._vmi(f"other-{number}", OTHER))

    async def all_run(self) -> bool:
        """Whether all VMIs of the node say Running."""
        found = await self.instances()
        return len([one for one in found if one["status"].get("phase") == "Running"]) == self.count

    async def instances(self) -> list[Object]:
        """The node's VMIs."""
        return await self.client.list_all(
            VIRTUAL_MACHINE_INSTANCES, self.namespace, label_selector=f"kubevirt.io/nodeName={NODE}"
        )

    def syncs(self) -> list[tuple[str, int]]:
        """All Syncs so far: name of the VMI and CLOCK_MONOTONIC."""
        path = self.folder / "syncs"
        lines = path.read_text().splitlines() if path.exists() else []
        return [(name, int(when)) for name, when in (line.split() for line in lines)]


def name_of(obj: Object) -> str:
    """An object's name."""
    return str(obj["metadata"]["name"])


async def in_turns(numbers: range, make: Callable[[int], Awaitable[Object]]) -> list[Object]:
    """Make objects, some side by side."""
    turns = asyncio.Semaphore(SIDE_BY_SIDE)

    async def one(number: int) -> Object:
        async with turns:
            return await make(number)

    return list(await asyncio.gather(*(one(number) for number in numbers)))


async def until(check: Callable[[], Awaitable[bool]], seconds: float, pause: float = 0.05) -> None:
    """Ask until it is so; raises TimeoutError."""
    async with asyncio.timeout(seconds):
        while not await check():
            await asyncio.sleep(pause)


@contextmanager
def launchers(folder: Path) -> Iterator[None]:
    """All launchers, in processes of their own."""
    process = subprocess.Popen([sys.executable, "-m", "tests.agent.podded", str(folder)], cwd=ROOT)
    try:
        yield
    finally:
        process.kill()
        process.wait()
