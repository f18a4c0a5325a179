"""SIGKILL of any one process at each stage of a VM's life: its outcome, and nothing left behind.

Stages share boots: what the pod survives is killed in one after the other.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import re
import signal
import time
from pathlib import Path

import pytest

from kvnode.rpc.errors import RpcError
from tests.conftest import Guest
from tests.launcher.agent import FakeAgent, Heard
from tests.launcher.pod.driving import booted, drive, ended, is_running, marked, start
from tests.launcher.pod.pod import OPTIONS, Pod, launcher_pod, pod_vmi
from tests.reports import report
from tests.standalone.helpers import wait_until

pytestmark = pytest.mark.integration

DAEMONS = ("virtlogd", "virtqemud")
#: What the pod does not outlive, with the container's status.
FATAL = (("launcher", 137), ("launcher-monitor", 137))


async def killed_and_back(pod: Pod, role: str) -> None:
    """Kill a daemon, and wait until it runs again."""
    before = pod.kill(role)
    await asyncio.to_thread(
        wait_until, lambda: pod.pids().get(role, before) != before, 30, f"a new {role}; the log:\n{pod.log}"
    )


def ended_as(state: str, reason: str) -> object:
    """A domain event of that state."""

    def matches(heard: Heard) -> bool:
        return heard.kind != "EVENT" and heard.state == (state, reason)

    return matches


async def start_anyhow(pod: Pod, agent: FakeAgent) -> bool:
    """Have the VM started by an agent that tries again, as the real one does.

    False when the pod has ended instead, as it may when libvirt's daemon dies in the few milliseconds from QEMU's
    process to QEMU itself: the process ends with it, and the next daemon holds the domain for one that starts and
    lets nobody change it. The launcher has seen the process, and its end.
    """
    until = time.monotonic() + 120
    while time.monotonic() < until and pod.running:
        with contextlib.suppress(RpcError, AssertionError):
            async with agent.commands() as client:
                await client.sync(pod.vmi_json, OPTIONS)
            await agent.until(is_running, "that the guest runs", 5)
            return True
        await asyncio.sleep(1)
    assert await ended(pod, 10) == 0, f"the VM does not start; the launcher's log:\n{pod.log}"
    assert re.search(r"QEMU \(process \d+\) is gone", pod.log), pod.log
    return False


class TestBeforeThereIsADomain:
    def test_daemons_come_back_and_the_vm_starts(self, guest: Guest, libvirt_cache: Path) -> None:
        with launcher_pod(guest, libvirt_cache) as pod:
            pod.vmi = pod_vmi()

            async def scenario(agent: FakeAgent) -> None:
                for role in DAEMONS:
                    await killed_and_back(pod, role)
                assert await start_anyhow(pod, agent)
                pids = pod.pids()
                pod.terminate()
                await agent.until(lambda one: one.gone, "the end")
                assert await ended(pod) == 0
                pod.assert_nothing_left(pids)

            drive(pod, scenario)

    @pytest.mark.parametrize(("role", "status"), FATAL)
    def test_what_the_pod_does_not_outlive(
        self, guest: Guest, libvirt_cache: Path, role: str, status: int
    ) -> None:
        with launcher_pod(guest, libvirt_cache) as pod:
            wait_until(pod.socket.exists, 60, "the socket")
            pids = pod.pids()
            pod.kill(role)
            assert pod.wait() == status
            pod.assert_nothing_left(pids)


class TestWhileItStarts:
    @pytest.mark.parametrize("role", DAEMONS)
    def test_a_daemon(self, guest: Guest, libvirt_cache: Path, role: str) -> None:
        with launcher_pod(guest, libvirt_cache) as pod:
            pod.vmi = pod_vmi()

            async def scenario(agent: FakeAgent) -> None:
                async with agent.commands() as client:
                    syncing = asyncio.ensure_future(client.sync(pod.vmi_json, OPTIONS))
                    await agent.until(lambda one: one.kind == "ADDED", "the domain")
                    pids = pod.pids()
                    pod.kill(role)
                    await asyncio.gather(syncing, return_exceptions=True)
                if await start_anyhow(pod, agent):
                    pids = pod.pids()
                    pod.terminate()
                    await agent.until(lambda one: one.gone, "the end")
                    assert await ended(pod) == 0
                pod.assert_nothing_left(pids)
                assert "Traceback" not in pod.log

            drive(pod, scenario)

    @pytest.mark.parametrize(("role", "status"), FATAL)
    def test_what_the_pod_does_not_outlive(
        self, guest: Guest, libvirt_cache: Path, role: str, status: int
    ) -> None:
        with launcher_pod(guest, libvirt_cache) as pod:
            pod.vmi = pod_vmi()

            async def scenario(agent: FakeAgent) -> None:
                async with agent.commands() as client:
                    syncing = asyncio.ensure_future(client.sync(pod.vmi_json, OPTIONS))
                    await agent.until(lambda one: one.kind == "ADDED", "the domain")
                    pids = pod.pids()
                    pod.kill(role)
                    with pytest.raises(RpcError):
                        await syncing
                assert await ended(pod) == status
                pod.assert_nothing_left(pids)

            drive(pod, scenario)


class TestWhileItRuns:
    @report("B46")
    def test_daemons_come_back_the_guest_goes_on_and_events_arrive(
        self, guest: Guest, libvirt_cache: Path
    ) -> None:
        """The guest is the same process; after its daemon's return, its own end is heard of."""
        with launcher_pod(guest, libvirt_cache) as pod:
            pod.vmi = pod_vmi()

            async def scenario(agent: FakeAgent) -> None:
                await start(pod, agent)
                await booted(pod)
                qemu = pod.pids()["qemu"]
                for role in DAEMONS:
                    await killed_and_back(pod, role)
                await asyncio.to_thread(
                    wait_until, lambda: "connected to the libvirt daemon again" in pod.log, 60, "a connection"
                )
                assert pod.pids()["qemu"] == qemu
                agent.forget()
                await asyncio.to_thread(pod.monitor_command, "system_powerdown")
                await agent.until(ended_as("Shutoff", "Shutdown"), "the guest's clean end")
                assert await ended(pod) == 0

            drive(pod, scenario)

    @report("B72")
    def test_qemu_is_told_as_a_crash(self, guest: Guest, libvirt_cache: Path) -> None:
        with launcher_pod(guest, libvirt_cache) as pod:
            pod.vmi = pod_vmi()

            async def scenario(agent: FakeAgent) -> None:
                await start(pod, agent)
                pids = pod.pids()
                pod.kill("qemu")
                await agent.until(ended_as("Shutoff", "Crashed"), "the crash")
                assert await ended(pod) == 0
                pod.assert_nothing_left(pids)

            drive(pod, scenario)

    @report("B46")
    def test_qemu_while_its_daemon_is_away_is_told_as_a_crash(
        self, guest: Guest, libvirt_cache: Path
    ) -> None:
        with launcher_pod(guest, libvirt_cache) as pod:
            pod.vmi = pod_vmi()

            async def scenario(agent: FakeAgent) -> None:
                await start(pod, agent)
                pids = pod.pids()
                os.kill(pids["virtqemud"], signal.SIGKILL)
                os.kill(pids["qemu"], signal.SIGKILL)
                await agent.until(ended_as("Shutoff", "Crashed"), "the crash")
                assert await ended(pod) == 0
                pod.assert_nothing_left(pids)

            drive(pod, scenario)

    @pytest.mark.parametrize(("role", "status"), FATAL)
    def test_what_the_pod_does_not_outlive(
        self, guest: Guest, libvirt_cache: Path, role: str, status: int
    ) -> None:
        with launcher_pod(guest, libvirt_cache) as pod:
            pod.vmi = pod_vmi()

            async def scenario(agent: FakeAgent) -> None:
                await start(pod, agent)
                pids = pod.pids()
                pod.kill(role)
                assert await ended(pod) == status
                pod.assert_nothing_left(pids)
                if role == "launcher":
                    assert "ending QEMU" in pod.log

            drive(pod, scenario)


class TestWhileItStops:
    """The guest is deaf to its power button, so that the stop takes its time."""

    @pytest.mark.parametrize("role", [*DAEMONS, "qemu"])
    def test_the_pod_ends_all_the_same(self, guest: Guest, libvirt_cache: Path, role: str) -> None:
        with launcher_pod(guest, libvirt_cache, grace=4) as pod:
            pod.vmi = pod_vmi("rdinit=/nothing panic=0")

            async def scenario(agent: FakeAgent) -> None:
                await start(pod, agent)
                pids = pod.pids()
                pod.terminate()
                await agent.until(marked, "that the VM is to be stopped")
                pod.kill(role)
                await agent.until(lambda one: one.gone, "the end")
                assert await ended(pod, 90) == 0
                pod.assert_nothing_left(pids)

            drive(pod, scenario)

    @pytest.mark.parametrize(("role", "status"), FATAL)
    def test_what_the_pod_does_not_outlive(
        self, guest: Guest, libvirt_cache: Path, role: str, status: int
    ) -> None:
        with launcher_pod(guest, libvirt_cache) as pod:
            pod.vmi = pod_vmi("rdinit=/nothing panic=0")

            async def scenario(agent: FakeAgent) -> None:
                await start(pod, agent)
                pids = pod.pids()
                pod.terminate()
                await agent.until(marked, "that the VM is to be stopped")
                pod.kill(role)
                assert await ended(pod) == status
                pod.assert_nothing_left(pids)

            drive(pod, scenario)


def test_an_agent_that_restarts_hears_the_newest_state(guest: Guest, libvirt_cache: Path) -> None:
    with launcher_pod(guest, libvirt_cache) as pod:
        pod.vmi = pod_vmi()

        async def scenario(agent: FakeAgent) -> None:
            await start(pod, agent)
            async with agent.commands() as client:
                await agent.stop()
                await client.vmi_command("PauseVirtualMachine", pod.vmi_json)
                await client.vmi_command("UnpauseVirtualMachine", pod.vmi_json)
                await client.vmi_command("PauseVirtualMachine", pod.vmi_json)
                await asyncio.sleep(2)
                agent.forget()
                await agent.start()
                await agent.until(ended_as("Paused", "User"), "the newest state")
                await client.vmi_command("UnpauseVirtualMachine", pod.vmi_json)
                await agent.until(is_running, "that it runs")

        drive(pod, scenario)
