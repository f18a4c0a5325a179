"""SIGKILL of any one process at each stage of a VM's life: its outcome, and nothing left behind.

Stages share boots: what the pod survives is killed in one after the other.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
from pathlib import Path

import pytest

from kvnode.rpc.errors import RpcError
from tests.conftest import Guest
from tests.launcher.agent import FakeAgent
from tests.launcher.pod.driving import booted, drive, ended, is_running, marked, start
from tests.launcher.pod.killing import (
    ended_as,
    its_end,
    kill_with_qemu,
    killed_and_back,
    pid_file,
    start_anyhow,
)
from tests.launcher.pod.pod import OPTIONS, launcher_pod, pod_vmi
from tests.reports import report
from tests.standalone.helpers import wait_until

pytestmark = pytest.mark.integration

DAEMONS = ("virtlogd", "virtqemud")
#: What the pod does not outlive, with the container's status.
FATAL = (("launcher", 137), ("launcher-monitor", 137))


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
            wait_until(pod.socket.exists, 120, "the socket")
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
                    pod.kill(role)
                    await asyncio.gather(syncing, return_exceptions=True)
                await its_end(pod, agent, await start_anyhow(pod, agent))

            drive(pod, scenario)

    @pytest.mark.parametrize("delay", [0, 0.05, 0.2])
    def test_qemu(self, guest: Guest, libvirt_cache: Path, delay: float) -> None:
        """Its Sync says so, or the agent hears of a crash; the next Sync starts another."""
        with launcher_pod(guest, libvirt_cache) as pod:
            pod.vmi = pod_vmi()

            async def scenario(agent: FakeAgent) -> None:
                async with agent.commands() as client:
                    syncing = asyncio.ensure_future(client.sync(pod.vmi_json, OPTIONS))
                    while not pid_file(pod).exists() or "qemu" not in pod.pids():
                        await asyncio.sleep(0)
                    await asyncio.sleep(delay)
                    pod.kill("qemu")
                    await asyncio.gather(syncing, return_exceptions=True)
                agent.forget()
                await its_end(pod, agent, await start_anyhow(pod, agent))

            drive(pod, scenario)

    @pytest.mark.parametrize("delay", [0, 0.0005, 0.002, 0.01, 0.05, 0.2])
    def test_its_daemon_between_qemu_and_its_answer(
        self, guest: Guest, libvirt_cache: Path, delay: float
    ) -> None:
        """QEMU dies with its daemon, and the next one would wait for it for ever: it starts all the same."""
        self.kill_its_daemon(guest, libvirt_cache, delay)

    def test_its_daemon_without_root(self, guest: Guest, libvirt_cache: Path) -> None:
        self.kill_its_daemon(guest, libvirt_cache, 0, "--run-as-nonroot", user=64055)

    @staticmethod
    def kill_its_daemon(guest: Guest, cache: Path, delay: float, *flags: str, user: int = 0) -> None:
        with launcher_pod(guest, cache, *flags, user=user) as pod:
            pod.vmi = pod_vmi()

            async def scenario(agent: FakeAgent) -> None:
                (pod.share / "domain-notify-pipe.sock").chmod(0o666)
                before = pod.pids()["virtqemud"]
                killer = kill_with_qemu(pod, before, delay)
                async with agent.commands() as client:
                    with contextlib.suppress(RpcError):
                        await client.sync(pod.vmi_json, OPTIONS)
                await asyncio.to_thread(killer.join)
                await asyncio.to_thread(
                    wait_until, lambda: pod.pids().get("virtqemud", before) != before, 120, "a new daemon"
                )
                await its_end(pod, agent, await start_anyhow(pod, agent))

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
                    answer = (await asyncio.gather(syncing, return_exceptions=True))[0]
                    # None: on a busy machine the guest may have come to run before the process was killed.
                    assert answer is None or isinstance(answer, RpcError), answer
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
                    wait_until,
                    lambda: "connected to the libvirt daemon again" in pod.log,
                    120,
                    "a connection",
                )
                assert pod.pids()["qemu"] == qemu
                agent.forget()
                await asyncio.to_thread(pod.monitor_command, "system_powerdown")
                await agent.until(ended_as("Shutoff", "Shutdown"), "the guest's clean end")
                assert await ended(pod) == 0

            drive(pod, scenario)

    def test_a_daemon_that_hangs_and_goes_on(self, guest: Guest, libvirt_cache: Path) -> None:
        """Calls fail in time meanwhile, the guest is the same, and its end is heard of."""
        with launcher_pod(guest, libvirt_cache) as pod:
            pod.vmi = pod_vmi()

            async def scenario(agent: FakeAgent) -> None:
                await start(pod, agent)
                await booted(pod)
                pids = pod.pids()
                os.kill(pids["virtqemud"], signal.SIGSTOP)
                try:
                    silent = "does not answer yet (it takes the connection, and says nothing)"
                    await asyncio.to_thread(wait_until, lambda: silent in pod.log, 110, "word of the silence")
                    async with agent.commands() as client:
                        await client.ping()
                        with pytest.raises(RpcError):
                            await client.vmi_command("PauseVirtualMachine", pod.vmi_json)
                finally:
                    os.kill(pids["virtqemud"], signal.SIGCONT)
                again = "connected to the libvirt daemon again"
                await asyncio.to_thread(wait_until, lambda: again in pod.log, 120, "a connection")
                assert pod.pids() == pids
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
                disk = pod.share / "container-disks/disk_0.sock"
                disk.touch()
                pids = pod.pids()
                pod.kill(role)
                assert await ended(pod) == status
                pod.assert_nothing_left(pids)
                if role == "launcher":
                    assert "ending QEMU" in pod.log
                    assert not disk.exists(), "container disks end with the VM"

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
                assert await ended(pod) == 0
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
