"""A node whose disk is full, whose network cannot be set up, or that is cut off."""

from __future__ import annotations

import asyncio
import contextlib
import os
import shutil
import signal
import socket
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from kvnode.agent.processes import descendants
from kvnode.agent.watchdog import Watchdog
from tests.agent.lab import called, lab, unhurt, until
from tests.agent.node import SPEC, configuration, eventually
from tests.agent.test_faults_launchers import synchronized
from tests.cluster.cluster import Cluster
from tests.cluster.relay import serve
from tests.kube.faults import Fault
from tests.kube.loops import minutes
from tests.kube.support import background
from tests.net.namespaces import Namespace
from tests.standalone.helpers import alive

__all__ = ["configuration"]

pytestmark = [
    pytest.mark.cluster,
    pytest.mark.integration,
    pytest.mark.skipif(os.geteuid() != 0, reason="mounts, namespaces and roots of their own"),
]


@contextmanager
def small_disk(path: Path) -> Iterator[Path]:
    """A file system of 64 KiB; the file that fills it, which is not there yet."""
    path.mkdir(parents=True)
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=64k", "tmpfs", path], check=True)
    try:
        yield path / "filler"
    finally:
        subprocess.run(["umount", "--lazy", path], check=True)  # a thread may still be writing


def fill(filler: Path) -> None:
    """Leave no room at all."""
    with filler.open("wb", buffering=0) as file:
        try:
            while True:
                file.write(b"x" * 4096)
        except OSError:
            pass


@minutes(3)
async def test_no_room_for_the_record_of_a_new_launcher(control_plane: Cluster, namespace: str) -> None:
    async with lab(control_plane, namespace) as node:
        with small_disk(node.settings.private) as filler:
            async with node.agent():
                runs = await node.run("runs")
                fill(filler)
                comes = await node.launch("comes")

                async def told() -> bool:
                    return "No space left on device" in await synchronized(node, "comes")

                await eventually(told)
                assert "sync" not in comes.calls, "an agent that dies now would not find it again"
                await runs.become("Paused", "User")
                await until(lambda: "Paused" in repr(node.history.status("runs")))
                filler.unlink()
                await called(comes, "sync")
                await comes.become("Running", "Unknown")
                await node.until("Running", "comes")
                assert unhurt([runs, comes])
                assert node.history.phases("runs") == node.history.phases("comes") == ["Scheduled", "Running"]


@minutes(3)
async def test_no_room_for_any_record_when_the_agent_starts(control_plane: Cluster, namespace: str) -> None:
    """The records are lost and cannot be written: guests that run are left alone, however long that lasts."""
    now = 0.0
    async with lab(control_plane, namespace) as node:
        with small_disk(node.settings.private) as filler:
            async with node.agent():
                runs = await node.run("runs")
            records = node.settings.private / "ghost-records"
            for record in records.iterdir():
                record.unlink()
            fill(filler)
            async with node.agent() as agent:
                agent.rounds.watchdog = Watchdog(lambda: now)
                [ghost] = agent.rounds.waiting
                for now in (0.0, 31.0, 62.0):  # noqa: B007 - it is the watchdog's clock
                    await agent.rounds.look_after(ghost)
                assert not list(records.iterdir())
                assert (await node.get("runs"))["status"]["phase"] == "Running"
                filler.unlink()
                await agent.rounds.look_after(ghost)
                await until(lambda: list(records.iterdir()) and not agent.rounds.waiting)
                assert unhurt([runs])
                await runs.become("Shutoff", "Shutdown")
                await node.until("Succeeded", "runs")
            assert node.history.phases("runs") == ["Scheduled", "Running", "Succeeded"]


@minutes(3)
async def test_no_room_for_how_a_guest_ended_and_an_agent_that_dies_over_it(
    control_plane: Cluster, namespace: str
) -> None:
    """The API server takes no status meanwhile either; the next agent still learns that nothing crashed."""
    write = "PATCH .*virtualmachineinstances/testvmi"
    async with lab(control_plane, namespace) as node:
        with small_disk(node.settings.private) as filler:
            async with node.agent():
                remote = await node.run()
                fill(filler)
                refusals = Fault(write, times=10_000, status=500, body=b"{}")
                node.server.faults.append(refusals)
                await remote.become("Shutoff", "Shutdown")
                await until(lambda: refusals.times < 9_998)
                assert "delete" not in remote.calls
            refusals.times = 0
            async with node.agent():
                await node.until("Succeeded")
                await called(remote, "delete")
            assert node.history.phases() == ["Scheduled", "Running", "Succeeded"]
            filler.unlink()


NETWORKED = {
    **SPEC,
    "domain": {**SPEC["domain"], "devices": {"interfaces": [{"name": "default", "masquerade": {}}]}},  # type: ignore[dict-item]
    "networks": [{"name": "default", "pod": {}}],
}


def lay(pod: Namespace) -> None:
    """Give a pod its interface."""
    pod.run(
        "ip", "link", "add", "eth0", "address", "02:00:00:00:00:05", "type", "veth", "peer", "name", "far"
    )
    pod.run("ip", "addr", "add", "10.244.0.5/24", "dev", "eth0")
    for name in ("eth0", "far"):
        pod.run("ip", "link", "set", name, "up")
    pod.run("ip", "route", "add", "default", "via", "10.244.0.1")


@minutes(3)
async def test_a_pod_whose_interface_comes_late(control_plane: Cluster, namespace: str) -> None:
    async with lab(control_plane, namespace) as node, node.agent():
        with Namespace() as pod:
            node.inside = pod.command()
            remote = await node.launch(spec=NETWORKED)

            async def told() -> bool:
                return "network" in await synchronized(node)

            await eventually(told)
            assert "sync" not in remote.calls
            lay(pod)
            await called(remote, "sync")
            assert "tap0" in pod.run("ip", "link")
            await remote.become("Running", "Unknown")
            await node.until("Running")

            async def well() -> bool:
                return await synchronized(node) == ""

            await eventually(well)
            assert node.history.phases() == ["Scheduled", "Running"]


@minutes(3)
async def test_a_name_that_is_taken_fails_that_vm_and_no_other(
    control_plane: Cluster, namespace: str
) -> None:
    """What was changed until then is changed back."""
    async with lab(control_plane, namespace) as node, node.agent():
        other = await node.run("other")
        with Namespace() as pod:
            lay(pod)
            pod.run("ip", "link", "add", "tap0", "type", "bridge")
            before = pod.run("ip", "-o", "link")
            node.inside = pod.command()
            remote = await node.launch(spec=NETWORKED)
            await node.until("Failed")
            assert "tap0" in await synchronized(node)
            assert "sync" not in remote.calls
            assert pod.run("ip", "-o", "link").count("\n") == before.count("\n")
        await other.become("Shutoff", "Shutdown")
        await node.until("Succeeded", "other")
        assert node.history.phases("other") == ["Scheduled", "Running", "Succeeded"]


@minutes(3)
async def test_a_namespace_that_is_not_the_pod_s_is_not_touched(
    control_plane: Cluster, namespace: str
) -> None:
    """A launcher in the node's own network, by whatever fault: the node's interfaces stay what they are."""
    before = subprocess.run(["ip", "-o", "link"], capture_output=True, text=True, check=True).stdout
    async with lab(control_plane, namespace) as node, node.agent():
        remote = await node.launch(spec=NETWORKED)

        async def told() -> bool:
            return "no network namespace of its own" in await synchronized(node)

        await eventually(told)
        assert "sync" not in remote.calls
    after = subprocess.run(["ip", "-o", "link"], capture_output=True, text=True, check=True).stdout
    assert [line.split(":")[1] for line in after.splitlines() if "tap0" in line or "k6t" in line] == [
        line.split(":")[1] for line in before.splitlines() if "tap0" in line or "k6t" in line
    ]


HERE, THERE = "198.18.77.1", "198.18.77.2"


@contextmanager
def cable(there: Namespace) -> Iterator[str]:
    """A link to a namespace; the name of its end on this side."""
    name = f"kvf{os.getpid() % 100000}"
    run = ("ip", "link", "add", name, "type", "veth", "peer", "name", "eth0", "netns", str(there.pid))
    subprocess.run(run, check=True)
    try:
        for words in (("addr", "add", f"{HERE}/30", "dev", name), ("link", "set", name, "up")):
            subprocess.run(["ip", *words], check=True)
        there.run("ip", "addr", "add", f"{THERE}/30", "dev", "eth0")
        there.run("ip", "link", "set", "eth0", "up")
        yield name
    finally:
        subprocess.run(["ip", "link", "delete", name], check=False)


@minutes(6)
async def test_connections_that_fall_silent(control_plane: Cluster, namespace: str) -> None:
    """Cut off without a word, the agent notices within a minute, though nothing is sent; then all is caught up."""
    async with lab(control_plane, namespace) as node:
        with Namespace() as there, cable(there) as name:
            listener = socket.create_server((HERE, 0))
            port = urlsplit(node.server.url).port
            assert port is not None
            url = f"http://{HERE}:{listener.getsockname()[1]}"
            log = node.folder / "agent.log"
            async with (
                background(serve(listener, "127.0.0.1", port)),
                node.process(url, tuple(there.command())),
            ):
                stays, goes = await node.run("stays"), await node.run("goes")
                subprocess.run(["ip", "link", "set", name, "down"], check=True)
                began = asyncio.get_running_loop().time()
                await node.remove("goes")
                told = "virtualmachineinstances.kubevirt.io: cannot be followed"
                await until(lambda: told in log.read_text(), 240)
                # A minute, and what a busy machine needs; the kernel itself would try for a quarter of an hour.
                assert asyncio.get_running_loop().time() - began < 120
                await stays.become("Paused", "User")
                assert unhurt([stays, goes])
                subprocess.run(["ip", "link", "set", name, "up"], check=True)
                await called(goes, "kill", 240)
                await until(lambda: "Paused" in repr(node.history.status("stays")), 240)
                assert unhurt([stays])
                assert node.history.phases("stays") == ["Scheduled", "Running"]


@minutes(3)
@pytest.mark.parametrize("new_agent", [False, True])
async def test_a_pod_that_vanishes_while_its_guest_lives(
    control_plane: Cluster, namespace: str, new_agent: bool
) -> None:
    """kubelet was down when the pod was deleted by force: a QEMU that lives on the node is not declared dead.

    Neither is it by an agent that never spoke to its launcher.
    """
    now = 0.0
    async with lab(control_plane, namespace) as node, contextlib.AsyncExitStack() as agents:
        agent = await agents.enter_async_context(node.agent())
        qemu = node.folder / "qemu-system-x86"
        shutil.copy(shutil.which("sleep") or "", qemu)
        # A monitor of its own: below this process there may be guests of other tests.
        node.inside = ["sh", "-c", '"$0" 600 & setpriv --pdeathsig KILL -- "$@"; wait', str(qemu)]
        remote = await node.run()
        (guest,) = [pid for pid, name in descendants(remote.pid) if name.startswith("qemu")]
        try:
            if new_agent:
                await agents.aclose()
            shutil.rmtree(node.settings.pods / "p-testvmi")
            if new_agent:
                agent = await agents.enter_async_context(node.agent())
            agent.rounds.watchdog = Watchdog(lambda: now)
            ghost = next(iter(agent.ghosts))
            for now in (0.0, 31.0, 62.0):  # noqa: B007 - it is the watchdog's clock
                await agent.rounds.look_after(ghost)
            assert (await node.get())["status"]["phase"] == "Running"
            assert unhurt([remote])
        finally:
            os.kill(guest, signal.SIGKILL)
        await until(lambda: not alive(guest))
        for now in (93.0, 125.0):  # noqa: B007
            await agent.rounds.look_after(ghost)
        await node.until("Failed")
        assert node.history.phases() == ["Scheduled", "Running", "Failed"]
