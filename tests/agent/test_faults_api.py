"""The API server fails the agent in every way; guests are not hurt, and all is well when it is over."""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import orjson
import pytest

from kvnode.agent.heartbeat import SCHEDULABLE
from kvnode.kube.client import PatchType
from kvnode.kube.resources import NODES, VIRTUAL_MACHINE_INSTANCES
from tests.agent.lab import called, lab, unhurt, until
from tests.agent.node import configuration, eventually
from tests.cluster.api import Api
from tests.cluster.cluster import Cluster
from tests.cluster.controlplane import Ports
from tests.kube.faults import Fault
from tests.kube.loops import minutes, real_time

__all__ = ["configuration"]

pytestmark = pytest.mark.cluster

STATUS_WRITE = r"PATCH /apis/kubevirt.io/v1/namespaces/[^/]+/virtualmachineinstances/testvmi"
WATCH = r"virtualmachineinstances\?(?=.*nodeName).*watch=true"
"""Of the node's own VMIs."""


def refusal(code: int, reason: str, **details: object) -> bytes:
    """A Status."""
    about = {"kind": "Status", "status": "Failure", "message": "played", "details": details}
    return orjson.dumps({**about, "code": code, "reason": reason})


@minutes(4)
async def test_a_minute_without_it(control_plane: Cluster, namespace: str) -> None:
    """What happened meanwhile is written, told and done when it is back, whatever it was."""
    async with lab(control_plane, namespace) as node, node.process() as process:
        stays, goes = await node.run("stays"), await node.run("goes")
        node.server.up = False
        node.server.cut()
        await stays.become("Paused", "User")
        await node.remove("goes")
        comes = await node.launch("comes")
        await asyncio.sleep(60)
        assert process.returncode is None
        assert unhurt([stays, goes, comes]), "while nobody could say that a VMI is gone"
        assert node.history.phases("stays") == ["Scheduled", "Running"]
        node.server.up = True

        async def paused() -> bool:
            conditions = (await node.get("stays"))["status"].get("conditions") or ()
            return any(one["type"] == "Paused" and one["status"] == "True" for one in conditions)

        await eventually(paused)
        await called(goes, "kill")
        await called(comes, "sync")
        assert unhurt([stays, comes])
        assert node.history.phases("stays") == ["Scheduled", "Running"]

        async def schedulable() -> bool:
            return bool(
                (await node.client.get(NODES, node.name))["metadata"]["labels"][SCHEDULABLE] == "true"
            )

        await eventually(schedulable)


@pytest.mark.parametrize("kind", ["answer", "event"])
@real_time
async def test_a_place_in_the_watch_that_is_gone(control_plane: Cluster, namespace: str, kind: str) -> None:
    gone = refusal(410, "Expired")
    async with lab(control_plane, namespace) as node, node.agent():
        stays, goes = await node.run("stays"), await node.run("goes")
        node.server.up = False
        node.server.cut()
        await node.remove("goes")
        if kind == "answer":
            node.server.faults.append(Fault(WATCH, status=410, body=gone))
        else:
            line = orjson.dumps({"type": "ERROR", "object": orjson.loads(gone)}) + b"\n"
            node.server.faults.append(Fault(WATCH, status=200, body=line))
        node.server.up = True
        await called(goes, "kill")
        await stays.become("Shutoff", "Shutdown")
        await node.until("Succeeded", "stays")
        assert node.history.phases("stays") == ["Scheduled", "Running", "Succeeded"]
        assert not {"kill", "shutdown"} & set(stays.calls)


@asynccontextmanager
async def another_server(cluster: Cluster, folder: Path) -> AsyncIterator[str]:
    """A second API server of the cluster's, which knows nothing of what was before it; its URL."""
    command = Path(f"/proc/{cluster.pid_of('kube-apiserver')}/cmdline").read_text().rstrip("\0").split("\0")
    port = Ports.free().api
    changed = [f"--secure-port={port}" if one.startswith("--secure-port=") else one for one in command]
    with (folder / "apiserver.log").open("wb") as log:
        process = await asyncio.create_subprocess_exec(*changed, stdout=log, stderr=log)
    url = f"https://127.0.0.1:{port}"
    api = Api(url, cluster.ca, cluster.admin)
    try:
        await eventually(lambda: asyncio.to_thread(api.ready))
        yield url
    finally:
        process.kill()
        await process.wait()


@minutes(3)
async def test_a_server_that_never_had_the_place_in_the_watch(
    control_plane: Cluster, namespace: str, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """A real 410: the server was restarted in the gap, and what the agent missed is older than all it remembers."""
    caplog.set_level("INFO", logger="kvnode.kube.reflector")
    async with lab(control_plane, namespace) as node, node.agent() as agent:
        stays, goes = await node.run("stays"), await node.run("goes")
        node.server.up = False
        node.server.cut()
        await node.remove("goes")
        for number in range(3):
            note = {"metadata": {"annotations": {"gap": str(number)}}}
            await node.client.patch(VIRTUAL_MACHINE_INSTANCES, "stays", namespace, note, PatchType.MERGE)
        async with another_server(control_plane, tmp_path) as node.server.upstream:
            lists = agent.vmis.reflector.lists
            node.server.up = True
            await called(goes, "kill")
            assert agent.vmis.reflector.lists == lists + 1
            assert "too old resource version" in caplog.text
            assert unhurt([stays])
            await stays.become("Shutoff", "Shutdown")
            await node.until("Succeeded", "stays")
            assert node.history.phases("stays") == ["Scheduled", "Running", "Succeeded"]
            node.server.up = False
            node.server.cut()
        node.server.upstream = control_plane.server


@pytest.mark.parametrize(
    "fault",
    [
        Fault(STATUS_WRITE, times=6, status=409, body=refusal(409, "Conflict")),
        Fault(STATUS_WRITE, times=6, status=403, body=refusal(403, "Forbidden")),
        Fault(STATUS_WRITE, times=6, status=422, body=refusal(422, "Invalid")),
        Fault(STATUS_WRITE, times=6, status=500, body=refusal(500, "InternalError")),
        Fault(STATUS_WRITE, times=3, status=429, headers={"Retry-After": "1"}),
        Fault(STATUS_WRITE, times=4, drop=True),
        Fault(STATUS_WRITE, drop=True, after=True),
        Fault(STATUS_WRITE, times=2, delay=0.7),
        Fault(STATUS_WRITE, times=2, silence=True),
    ],
    ids=["409", "403", "422", "500", "429", "dropped", "answer lost", "slow", "silent"],
)
@real_time
async def test_status_writes_that_fail(control_plane: Cluster, namespace: str, fault: Fault) -> None:
    fault = Fault(**vars(fault))  # it counts down
    async with lab(control_plane, namespace) as node, node.agent(timeout=2.0):
        # Before the start: the first writes follow it at once.
        node.server.faults.append(fault)
        remote = await node.launch()
        await called(remote, "sync")
        await remote.become("Running", "Unknown")
        await node.until("Running")
        await remote.become("Paused", "User")
        await until(lambda: b"Paused" in orjson.dumps(node.history.status()))
        assert fault.times == 0
        assert unhurt([remote])
        assert node.history.phases() == ["Scheduled", "Running"]
        assert all(one == "sync" for one in remote.calls)


@real_time
async def test_a_server_that_asks_for_patience_gets_it(control_plane: Cluster, namespace: str) -> None:
    async with lab(control_plane, namespace) as node, node.agent():
        node.server.faults.append(Fault(STATUS_WRITE, times=2, status=429, headers={"Retry-After": "2"}))
        remote = await node.launch()
        await called(remote, "sync")
        await remote.become("Running", "Unknown")
        await node.until("Running")
        times = [
            at
            for line, at in zip(node.server.requests, node.server.times, strict=True)
            if re.match(STATUS_WRITE, line)
        ]
        first, second, third = times[:3]
        assert min(second - first, third - second) >= 2


@real_time
async def test_a_404_that_does_not_name_the_vmi_ends_no_guest(control_plane: Cluster, namespace: str) -> None:
    """As a server gives one that just started, or a proxy before it."""
    one = rf"GET /apis/kubevirt.io/v1/namespaces/{namespace}/virtualmachineinstances/testvmi"
    async with lab(control_plane, namespace) as node, node.agent():
        remote = await node.run()
        fault = Fault(one, times=1000, status=404, body=b"404 page not found\n")
        node.server.faults.append(fault)
        unlabel = {"metadata": {"labels": {"kubevirt.io/nodeName": None}}}
        await node.client.patch(VIRTUAL_MACHINE_INSTANCES, "testvmi", namespace, unlabel, PatchType.MERGE)
        await until(lambda: fault.times < 995)
        assert unhurt([remote])
        fault.times = 0
        await remote.become("Paused", "User")
        await until(lambda: node.server.count(one) > 8)
        assert unhurt([remote]), "its object is there, though the watch says that it is not"
        await node.remove()
        await remote.become("Running", "Unknown")
        await called(remote, "kill")


@minutes(3)
async def test_a_flood_of_vmis_stays_within_the_rate(control_plane: Cluster, namespace: str) -> None:
    """50 requests a second and a burst of 100, and each VMI's status gets its turn."""
    count = 300
    async with lab(control_plane, namespace) as node:
        # Labelled at once, and of no use to anybody: no launcher is there.
        for number in range(count):
            labels = {"kubevirt.io/nodeName": node.name}
            obj = {
                "apiVersion": "kubevirt.io/v1",
                "kind": "VirtualMachineInstance",
                "metadata": {"name": f"v{number}", "namespace": namespace, "labels": labels},
                "spec": {"domain": {"devices": {}}},
                "status": {"phase": "Running", "nodeName": node.name},
            }
            await node.client.create(VIRTUAL_MACHINE_INSTANCES, obj)
        async with node.process():

            async def failed() -> bool:
                found = await node.client.list_all(VIRTUAL_MACHINE_INSTANCES, namespace)
                phases = [one["status"].get("phase") for one in found]
                return phases.count("Failed") == count

            await eventually(failed, 240)
        assert len(node.server.times) > count
        # From the first on, so that what is let through and comes late, as on a busy machine, does not count.
        first, late = node.server.times[0], 75
        for number, at in enumerate(node.server.times, start=1):
            assert number <= 100 + 50 * (at - first) + late
