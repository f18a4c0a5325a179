"""The node's sign of life and its labels, written again and again (``heartbeat.go``, ``node-labeller``)."""

from __future__ import annotations

import asyncio
import logging
import random
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Protocol

from kvnode.agent import kvm
from kvnode.agent.capabilities import Node
from kvnode.agent.heartbeat import PLUGIN_WAIT, STATE_FILES, beat, has_static_cpu_manager, next_interval
from kvnode.agent.labels.labeller import OBSOLETE_MODELS, NodeFacts, label_node
from kvnode.kube.client import Client, PatchType
from kvnode.kube.errors import Invalid, KubeError
from kvnode.kube.objects import utc_now
from kvnode.kube.resources import NODES
from kvnode.spec.config import ClusterConfig

logger = logging.getLogger(__name__)

LABEL_INTERVAL = 180.0
RETRY = 5.0
"""Seconds until a beat that was refused is tried again: a minute more and the node counts as dead."""
PARTING = 5.0
"""Seconds that the last beat may take when the agent ends."""
_PLUGIN_POLL = 1.0
_REALTIME = Path("/proc/sys/kernel/sched_rt_runtime_us")


class Told(Protocol):
    """Where warnings about the node go."""

    def record(self, obj: dict[str, Any], kind: str, reason: str, message: str) -> None:
        """Record an Event."""


class Heart:
    """Beats for one node."""

    def __init__(
        self,
        client: Client,
        node: str,
        config: Callable[[], ClusterConfig],
        ready: Callable[[], bool],
        root: Path = Path("/"),
    ) -> None:
        """`ready` tells whether VMs may be scheduled to the node; kubelet's state is looked for below `root`."""
        self._client = client
        self._node = node
        self._config = config
        self._ready = ready
        self._root = root

    async def run(self) -> None:
        """Beat until cancelled; the last beat says that nothing may be scheduled here any more."""
        chance = random.Random()  # noqa: S311  (spreads load)
        try:
            await self.beat()
            await self._wait_for_plugins()
            while True:
                told = await self.beat()
                await asyncio.sleep(next_interval(chance) if told else RETRY)
        finally:
            await self.part()

    async def beat(self, *, leaving: bool = False) -> bool:
        """Write one beat; tell whether it was taken."""
        pins = self._config().gate("CPUManager") and has_static_cpu_manager(self._cpu_manager())
        patch = beat(utc_now(), ready=self._ready() and not leaving, pins_cpus=pins)
        try:
            await self._client.patch(NODES, self._node, "", patch, PatchType.STRATEGIC)
        except KubeError as error:
            logger.warning("node %s: the heartbeat was not taken: %s", self._node, error)
            return False
        return True

    async def part(self) -> None:
        """Say that the agent ends, if the API server can be reached now."""
        try:
            async with asyncio.timeout(PARTING):
                await self.beat(leaving=True)
        except TimeoutError:
            logger.warning("node %s: the last heartbeat was not taken in time", self._node)

    async def _wait_for_plugins(self) -> None:
        """A node that just started is to be used as soon as its devices are there."""
        deadline = asyncio.get_running_loop().time() + PLUGIN_WAIT
        while not self._ready() and asyncio.get_running_loop().time() < deadline:
            await asyncio.sleep(_PLUGIN_POLL)

    def _cpu_manager(self) -> bytes | None:
        for name in STATE_FILES:
            try:
                return (self._root / name.lstrip("/")).read_bytes()
            except OSError:
                continue
        return None


class Labels:
    """Keeps the node's labels what its hypervisor earns it."""

    def __init__(
        self,
        client: Client,
        name: str,
        node: Node,
        *,
        config: Callable[[], ClusterConfig],
        raw: Callable[[], Mapping[str, Any]],
        events: Told,
        devices: Path = Path("/dev"),
    ) -> None:
        """`node` is what libvirt said; `raw` gives ``spec.configuration`` of the KubeVirt object as written."""
        self._client = client
        self._name = name
        self._node = node
        self._config = config
        self._raw = raw
        self._events = events
        self._hyperv = kvm.hyperv_features(devices / "kvm")
        self._wake = asyncio.Event()

    def look_again(self) -> None:
        """The configuration has changed."""
        self._wake.set()

    async def run(self) -> None:
        """Label until cancelled."""
        chance = random.Random()  # noqa: S311  (spreads load)
        while True:
            self._wake.clear()
            done = await self.label()
            pause = LABEL_INTERVAL * (1 + chance.random() * 1.2) if done else RETRY
            try:
                async with asyncio.timeout(pause):
                    await self._wake.wait()
            except TimeoutError:
                continue

    async def label(self) -> bool:
        """Bring the labels up to date; tell whether they are. Without libvirt's word they are left alone."""
        if self._node.hypervisor is None:
            return True
        try:
            node = await self._client.get(NODES, self._name)
            labelling = label_node(node, self._node.hypervisor, self._facts())
            if labelling.warning:
                self._events.record(node, "Warning", "HostModelIsObsolete", labelling.warning)
            if labelling.patch:
                await self._client.patch(NODES, self._name, "", labelling.patch, PatchType.JSON)
        except Invalid:
            return False  # another has written labels meanwhile
        except KubeError as error:
            logger.warning("node %s: labels were not taken: %s", self._name, error)
            return False
        return True

    def _facts(self) -> NodeFacts:
        config = self._config()
        return NodeFacts(
            machines=self._node.machines,
            counter=self._node.counter,
            hyperv=self._hyperv,
            realtime_runtime=_text(_REALTIME),
            obsolete_models=obsolete_models(self._raw()),
            cross_architecture=config.gate("CrossArchitectureVirtualization"),
        )


def obsolete_models(configuration: Mapping[str, Any]) -> frozenset[str]:
    """``obsoleteCPUModels``: models by name, whatever their value; the usual ones where it is not set."""
    found = configuration.get("obsoleteCPUModels")
    if not isinstance(found, Mapping):
        return OBSOLETE_MODELS
    return frozenset(map(str, found))


def _text(path: Path) -> str:
    try:
        return path.read_text()
    except OSError:
        return ""
