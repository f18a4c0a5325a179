"""Memory measured, shown and told of, with a real API server, and launchers in PID namespaces of their own."""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from kvnode.agent.main import Agent
from kvnode.agent.observe.headroom import REASON
from kvnode.kube.client import Client
from kvnode.kube.objects import Object
from kvnode.kube.resources import EVENTS
from kvnode.spec.overhead import memory_overhead_terms
from tests.agent.node import PATIENCE, Node, configuration, eventually, folder, node_of
from tests.agent.observe.reading import values
from tests.agent.observe.test_server import get
from tests.cluster.cluster import Cluster
from tests.kube.loops import real_time
from tests.kube.support import background

__all__ = ["configuration", "folder"]

pytestmark = [pytest.mark.cluster, pytest.mark.integration]


@asynccontextmanager
async def launchers(node: Node, eats: dict[str, float]) -> AsyncIterator[None]:
    """VMIs whose launchers' processes take so many times what is requested beside the guest's memory."""
    about: list[dict[str, Any]] = []
    for name, times in eats.items():
        made, _ = await node.vmi(name=name)
        requested = sum(term.bytes for term in memory_overhead_terms(made, "amd64", config={}))
        meta = {key: made["metadata"][key] for key in ("namespace", "name", "uid")}
        about.append({**meta, "pod": f"pod-{name}", "eats": int(requested * times)})
    (node.folder / "launchers.json").write_text(json.dumps(about))
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "tests.agent.podded", str(node.folder)
    )
    try:
        yield
    finally:
        process.kill()
        await process.wait()


@asynccontextmanager
async def agent_of(node: Node) -> AsyncIterator[Agent]:
    """An agent that finds launchers' roots by their processes."""
    async with Client(node.client.configuration) as client:
        agent = Agent(client, node.settings)
        ready = asyncio.Event()
        async with background(agent.run(ready)):
            async with asyncio.timeout(PATIENCE):
                await ready.wait()
            yield agent


async def told(node: Node) -> list[Object]:
    """The Events about memory."""
    found = await node.client.list_all(EVENTS, node.namespace)
    return [one for one in found if one["reason"] == REASON]


@real_time
async def test_a_vm_that_has_used_up_its_overhead_is_told_of_once(
    control_plane: Cluster, namespace: str, folder: Any
) -> None:
    async with (
        node_of(control_plane, namespace, folder) as node,
        launchers(node, {"hungry": 1.0, "modest": 0.0}),
        agent_of(node) as agent,
    ):
        await node.until("Running", "hungry")
        await node.until("Running", "modest")
        (event,) = await eventually(lambda: told(node))
        assert event["type"] == "Warning"
        assert event["involvedObject"]["name"] == "hungry"
        assert "MiB requested" in event["message"]
        assert "additionalGuestMemoryOverheadRatio" in event["message"]

        url = f"http://127.0.0.1:{agent.web.port}"
        found = values((await get(f"{url}/metrics"))[1])
        left = {
            dict(labels)["name"]: value
            for (name, labels), value in found.items()
            if name == "kubevirt_vmi_memory_overhead_headroom_bytes"
        }
        assert left["hungry"] < 0 < left["modest"]
        resident = {
            dict(labels)["name"]: value
            for (name, labels), value in found.items()
            if name == "kubevirt_vmi_process_resident_bytes" and value > 100 << 20
        }
        assert list(resident) == ["hungry"]
        page = (await get(url))[1]
        assert "MiB over" in page
        assert REASON in page

        for _ in range(2):  # measured again, and not told again
            for plan in agent.memory._plans.values():
                plan.due = 0
            await agent.memory.turn()
        await agent.events.flush(60)
        assert [one["count"] for one in await told(node)] == [1]


@real_time
async def test_an_agent_is_ready_when_kubelet_has_its_plugins_and_well_before(
    control_plane: Cluster, namespace: str, folder: Any
) -> None:
    async with node_of(control_plane, namespace, folder) as node:
        await node.kubelet.stop()
        async with agent_of(node) as agent:
            url = f"http://127.0.0.1:{agent.web.port}"
            assert await get(f"{url}/readyz") == (503, "kubelet has not taken the device plugins yet\n")
            assert await get(f"{url}/healthz") == (200, "ok\n")
            await node.kubelet.start()

            async def ready() -> bool:
                return await get(f"{url}/readyz") == (200, "ok\n")

            await eventually(ready)
