"""Starts that fail: what the VM's owner reads, and that nobody else is hurt."""

from __future__ import annotations

import asyncio
import os
import resource
import shutil
import signal

import pytest

from kvnode.agent.processes import descendants
from kvnode.kube.resources import EVENTS
from tests.agent.lab import Lab, called, lab, unhurt, until
from tests.agent.node import SPEC, configuration
from tests.agent.test_faults_launchers import synchronized
from tests.cluster.cluster import Cluster
from tests.kube.loops import minutes
from tests.reports import report

__all__ = ["configuration"]

pytestmark = [
    pytest.mark.cluster,
    pytest.mark.skipif(os.geteuid() != 0, reason="launchers have roots of their own"),
]

MIB = 1 << 20
DEFINED_NOT = "internal error: the machine type is none"
PASSED_THROUGH = {
    "domain": {
        **SPEC["domain"],  # type: ignore[dict-item]
        "memory": {"guest": "100Gi"},
        "devices": {
            "autoattachPodInterface": False,
            "gpus": [{"name": "g0", "deviceName": "vendor.example/gpu"}],
        },
    }
}


async def failures(node: Lab, name: str = "testvmi") -> list[str]:
    """Messages of the Events SyncFailed of a VMI."""
    found = await node.client.list_all(EVENTS, node.namespace)
    return [
        one["message"]
        for one in found
        if one["reason"] == "SyncFailed" and one["involvedObject"]["name"] == name
    ]


async def told(node: Lab, words: str, name: str = "testvmi") -> None:
    """Wait until a VMI's condition says it, and an Event too."""
    async with asyncio.timeout(120):
        while words not in await synchronized(node, name):
            await asyncio.sleep(0.1)
        while not any(words in one for one in await failures(node, name)):
            await asyncio.sleep(0.1)


async def untold(node: Lab, name: str = "testvmi") -> None:
    """Wait until the condition is gone."""
    async with asyncio.timeout(120):
        while await synchronized(node, name):
            await asyncio.sleep(0.1)


@report("B45")
@minutes(4)
async def test_a_domain_that_cannot_be_defined(control_plane: Cluster, namespace: str) -> None:
    """libvirt's own words are on the VMI, which goes on as soon as it can be."""
    async with lab(control_plane, namespace) as node, node.agent():
        remote = await node.launch(failure=DEFINED_NOT)
        await told(node, DEFINED_NOT)
        assert (await node.get())["status"]["phase"] == "Scheduled"
        await remote.do("say", "failure", "")
        await remote.become("Running", "Unknown")
        await node.until("Running")
        await untold(node)


@report("B45")
@minutes(5)
async def test_a_launcher_that_defines_for_ever(control_plane: Cluster, namespace: str) -> None:
    """The call has its time, and no more; other VMs start meanwhile."""
    async with lab(control_plane, namespace) as node, node.agent():
        remote = await node.launch(failure="played")
        await told(node, "played")
        await remote.do("stall", "SyncVirtualMachine")
        await remote.do("say", "failure", "")
        other = await node.run("other")
        async with asyncio.timeout(120):
            while not any("SyncVirtualMachine" in one for one in await failures(node)):
                await asyncio.sleep(0.1)
        assert (await node.get())["status"]["phase"] == "Scheduled"
        assert unhurt([remote, other])
        await remote.do("stall", "")
        await remote.become("Running", "Unknown")
        await node.until("Running")
        await untold(node)


@report("B04")
@minutes(4)
async def test_a_limit_of_locked_memory_that_the_kernel_refuses(
    control_plane: Cluster, namespace: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One clear error on its VMI; other VMs run and start as ever. What is allowed is set, on libvirt's daemon."""
    really = resource.prlimit

    def prlimit(pid: int, what: int, limits: tuple[int, int]) -> object:
        if limits[1] > 8 * MIB:  # also where this process could do it
            raise PermissionError(1, "Operation not permitted")
        return really(pid, what, limits)

    monkeypatch.setattr(resource, "prlimit", prlimit)
    async with lab(control_plane, namespace) as node, node.agent():
        before = await node.run("before")
        daemon = node.folder / "virtqemud"
        shutil.copy(shutil.which("sleep") or "", daemon)
        node.inside = ["sh", "-c", '"$0" 600 & setpriv --pdeathsig KILL -- "$@"; wait', str(daemon)]
        remote = await node.launch(spec=PASSED_THROUGH)
        node.inside = []
        (pid,) = [pid for pid, name in descendants(remote.pid) if name == "virtqemud"]
        try:
            await told(node, f"limit of locked memory of process {pid} cannot be set to ")
            assert "CAP_SYS_RESOURCE" in await synchronized(node)
            assert "sync" not in remote.calls
            assert (await node.get())["status"]["phase"] == "Scheduled"
            after = await node.run("after")
            await before.become("Paused", "User")
            await until(lambda: "Paused" in str(node.history.status("before")))
            assert unhurt([before, after])
            monkeypatch.setattr("kvnode.agent.runtime.memlock_bytes", lambda *_: 3 * MIB)
            await called(remote, "sync", 120)
            assert really(pid, resource.RLIMIT_MEMLOCK) == (3 * MIB, 3 * MIB)
            await untold(node)
        finally:
            os.kill(pid, signal.SIGKILL)
