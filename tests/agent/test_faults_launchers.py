"""Launchers that vanish, hang or lie: each hurts its own VM at most."""

from __future__ import annotations

import asyncio
import json
import os
import shutil
from pathlib import Path
from typing import Any

import aiohttp
import pytest

from kvnode.agent.watchdog import Watchdog
from kvnode.rpc.errors import RpcError
from tests.agent.lab import Lab, lab, unhurt, until
from tests.agent.node import configuration, eventually
from tests.agent.remote import Remote
from tests.cluster.cluster import Cluster
from tests.kube.loops import minutes

__all__ = ["configuration"]

needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="launchers have roots of their own")


def replace(remote: Remote, what: str, victim: Remote | None = None) -> None:
    """Put something else in the place of a launcher's socket."""
    remote.socket.unlink()
    if what == "link":
        assert victim is not None
        remote.socket.symlink_to(victim.socket)
    elif what == "fifo":
        os.mkfifo(remote.socket)
    elif what == "folder":
        remote.socket.mkdir()


async def synchronized(node: Lab, name: str = "testvmi") -> str:
    """The message of a VMI's condition Synchronized while that is false; else ""."""
    found = (await node.get(name))["status"].get("conditions") or ()
    return next((one["message"] for one in found if one["type"] == "Synchronized"), "")


@pytest.mark.cluster
@needs_root
@minutes(2)
async def test_one_that_dies_in_the_midst_of_a_call(control_plane: Cluster, namespace: str) -> None:
    """Its VM fails when its socket is gone for longer than the watchdog's time; no other's does."""
    now = 0.0
    async with lab(control_plane, namespace) as node, node.agent() as agent:
        agent.rounds.watchdog = Watchdog(lambda: now)
        other, dies = await node.run("other"), await node.run("dies")
        await dies.do("stall", "SyncVirtualMachine")
        before = dies.calls.count("sync")
        await dies.become("Paused", "User")
        await until(lambda: dies.calls.count("sync") > before)
        await dies.stop()
        dies.socket.unlink()
        ghost = next(one for one in agent.ghosts if one.name == "dies")
        await agent.rounds.look_after(ghost)
        assert (await node.get("dies"))["status"]["phase"] == "Running", "it may come back"
        now = 31.0
        await agent.rounds.look_after(ghost)
        await node.until("Failed", "dies")
        await other.become("Shutoff", "Shutdown")
        await node.until("Succeeded", "other")
        assert node.history.phases("dies") == ["Scheduled", "Running", "Failed"]
        assert node.history.phases("other") == ["Scheduled", "Running", "Succeeded"]
        assert not {"kill", "shutdown"} & set(other.calls)


@pytest.mark.cluster
@needs_root
@minutes(2)
async def test_one_whose_socket_vanishes_in_the_midst_of_a_call_and_comes_back(
    control_plane: Cluster, namespace: str
) -> None:
    async with lab(control_plane, namespace) as node, node.agent() as agent:
        remote = await node.run()
        hidden = remote.socket.with_name("hidden")
        await remote.do("stall", "SyncVirtualMachine")
        before = remote.calls.count("sync")
        await remote.become("Paused", "User")
        await until(lambda: remote.calls.count("sync") > before)
        remote.socket.rename(hidden)
        ghost = next(iter(agent.ghosts))
        await agent.rounds.look_after(ghost)
        hidden.rename(remote.socket)
        await remote.do("stall", "")
        await agent.rounds.look_after(ghost)
        await remote.become("Running", "Unknown")
        await remote.become("Shutoff", "Shutdown")
        await node.until("Succeeded")
        assert node.history.phases() == ["Scheduled", "Running", "Succeeded"]
        assert not {"kill", "shutdown"} & set(remote.calls)


@pytest.mark.cluster
@needs_root
@minutes(2)
async def test_one_that_comes_back_as_another_process_is_dialled_anew(
    control_plane: Cluster, namespace: str
) -> None:
    async with lab(control_plane, namespace) as node, node.agent() as agent:
        remote = await node.run()
        await remote.stop()
        remote.socket.unlink()
        await remote.start()
        await remote.do("say", "state", ["Running", "Unknown"])
        ghost = next(iter(agent.ghosts))
        await agent.rounds.look_after(ghost)
        await agent.rounds.ask(ghost)
        found = agent.launchers.known(remote.uid)
        assert found is not None
        assert found.pid == remote.launcher
        await remote.become("Shutoff", "Shutdown")
        await node.until("Succeeded")
        assert node.history.phases() == ["Scheduled", "Running", "Succeeded"]


@pytest.mark.cluster
@needs_root
@pytest.mark.parametrize("what", ["link", "fifo", "folder", "nothing"])
@minutes(2)
async def test_one_that_puts_something_else_in_its_socket_s_place(
    control_plane: Cluster, namespace: str, what: str
) -> None:
    """Neither is a link to another's socket followed, nor does anybody wait for a FIFO."""
    now = 0.0
    async with lab(control_plane, namespace) as node, node.agent() as agent:
        agent.rounds.watchdog = Watchdog(lambda: now)
        victim, hostile = await node.run("victim"), await node.run("hostile")
        replace(hostile, what, victim)
        await hostile.stop()
        before = len(victim.calls)
        ghost = next(one for one in agent.ghosts if one.name == "hostile")
        for now in (0.0, 31.0):  # noqa: B007 - it is the watchdog's clock
            await agent.rounds.look_after(ghost)
        await node.until("Failed", "hostile")
        await node.remove("hostile")
        await until(lambda: all(one.name != "hostile" for one in agent.ghosts))
        assert unhurt([victim])
        assert len(victim.calls) == before, "nobody else's VM was ever spoken of to it"
        await victim.become("Shutoff", "Shutdown")
        await node.until("Succeeded", "victim")


@pytest.mark.cluster
@needs_root
@pytest.mark.parametrize("place", ["var/run/kubevirt", "var/run"])
@minutes(2)
async def test_links_in_its_root_lead_nowhere(
    control_plane: Cluster, namespace: str, place: str, tmp_path: Path
) -> None:
    """Where the agent is to make its socket, and another's launcher would be heard in its stead."""
    async with lab(control_plane, namespace) as node:
        kept = tmp_path / "kept"
        (kept / "kubevirt").mkdir(parents=True)
        hostile = await node.launch("hostile")
        folder = hostile.root / place
        shutil.rmtree(folder)
        folder.symlink_to(kept if place.endswith("run") else kept / "kubevirt")
        async with node.agent():
            victim = await node.run("victim")
            await victim.become("Shutoff", "Shutdown")
            await node.until("Succeeded", "victim")
            assert not {"kill", "shutdown"} & set(victim.calls)
        assert list(kept.rglob("*")) == [kept / "kubevirt"]


GARBAGE = [
    b" ",
    b"[" * 100_000,
    b"\xff\xfe",
    b'{"ObjectMeta": 7}',
    b'{"ObjectMeta": {"namespace": {}, "name": []}}',
    b"null",
    b'"x"',
]


@pytest.mark.cluster
@needs_root
@minutes(2)
async def test_one_that_says_what_is_none(control_plane: Cluster, namespace: str) -> None:
    """Garbage, and messages of a hundred megabytes, to and fro."""
    async with lab(control_plane, namespace) as node, node.agent() as agent:
        victim, hostile = await node.run("victim"), await node.run("hostile")
        for text in GARBAGE:
            with pytest.raises(RpcError):
                await hostile.do("tell", "MODIFIED", text.decode("latin-1"))
        with pytest.raises(RpcError, match="larger than max"):
            await hostile.do("send", 100 << 20)
        ghost = next(one for one in agent.ghosts if one.name == "hostile")
        for size in (0, 100 << 20):
            await hostile.do("say", "answer", size)
            assert not await agent.rounds.ask(ghost)
        await victim.become("Shutoff", "Shutdown")
        await node.until("Succeeded", "victim")
        assert agent.connected
        assert not {"kill", "shutdown"} & set(victim.calls)


NONSENSE: list[Any] = [None, 0, -1, 1.5, True, "", "x", [], [None], [7], {}, {"a": 1}, 2**53]


@pytest.mark.cluster
@needs_root
@minutes(3)
async def test_statistics_that_are_none_do_not_hide_the_others(
    control_plane: Cluster, namespace: str
) -> None:
    async with lab(control_plane, namespace) as node, node.agent() as agent:
        victim, hostile = await node.run("victim"), await node.run("hostile")
        shapes: list[Any] = []
        for one in NONSENSE:
            shapes += [one, {"Cpu": one, "Memory": one, "Vcpu": one, "Net": one, "Block": one}]
            shapes += [
                {
                    "Cpu": {"TimeSet": True, "Time": one},
                    "Net": [{"NameSet": True, "Name": one, "RxBytes": one}],
                }
            ]
        async with aiohttp.ClientSession() as session:
            for shape in shapes:
                await hostile.do("say", "statistics", json.dumps(shape))
                for path, shown in (("metrics", f'name="{victim.name}"'), ("", f"{namespace}/victim")):
                    async with session.get(f"http://127.0.0.1:{agent.web.port}/{path}") as answer:
                        assert answer.status == 200, shape
                        assert shown in await answer.text()


@pytest.mark.cluster
@needs_root
@minutes(3)
async def test_a_flood_of_news_does_not_keep_others_from_being_served(
    control_plane: Cluster, namespace: str
) -> None:
    async with lab(control_plane, namespace) as node, node.process():
        victim, hostile = await node.run("victim"), await node.run("hostile")
        flood = asyncio.ensure_future(hostile.do("flood", 5000, 100))
        await asyncio.sleep(1)
        for status in ("Paused", "Running") * 3:
            await victim.become(status, "User" if status == "Paused" else "Unknown")

            async def is_shown(paused: bool = status == "Paused") -> bool:
                conditions = (await node.get("victim"))["status"].get("conditions") or ()
                return any(one["type"] == "Paused" for one in conditions) == paused

            await eventually(is_shown)
        flood.cancel()
        assert unhurt([victim])
