"""A launcher pod from its start to its end, driven as the reference's node agent drives its own."""

from __future__ import annotations

import asyncio
import json
import re
import time
from pathlib import Path

import pytest

from kvnode.rpc.errors import RpcError
from kvnode.rpc.memory import get_memory_report
from tests.conftest import Guest
from tests.launcher.agent import FakeAgent
from tests.launcher.pod.driving import booted, drive, ended, is_running, knows_guest, marked, start, sync
from tests.launcher.pod.pod import OPTIONS, UID, Pod, launcher_pod, pod_vmi
from tests.reports import report
from tests.standalone.helpers import wait_for_text, wait_until

pytestmark = pytest.mark.integration

#: The reference's own launcher has 73 MB resident with its monitor, 62 proportional.
RESIDENT_MB, PROPORTIONAL_MB, MONITOR_MB = 65, 52, 12


def memory_of(pid: int) -> tuple[float, float]:
    """Resident and proportional size of a process, in MB."""
    text = Path(f"/proc/{pid}/smaps_rollup").read_text()
    rss, pss = (int(re.findall(rf"^{name}:\s+(\d+) kB", text, re.M)[0]) for name in ("Rss", "Pss"))
    return rss * 1024 / 1e6, pss * 1024 / 1e6


async def check_memory(pod: Pod, agent: FakeAgent) -> None:
    """Launcher and monitor with one VM running, after a life's usual requests."""
    async with agent.commands(patient=True) as client:
        for _ in range(3):
            await client.sync(pod.vmi_json, OPTIONS)
            await client.ping()
            assert await client.domain()
            assert await client.domain_stats()
    # Start-up's memory is given back five seconds after the guest runs, and what its boot took in the two minutes
    # after that.
    for _ in range(180):
        sizes = {role: memory_of(pod.pids()[role]) for role in ("launcher", "launcher-monitor")}
        resident, proportional = (sum(values) for values in zip(*sizes.values(), strict=True))
        if resident <= RESIDENT_MB and proportional <= PROPORTIONAL_MB:
            break
        await asyncio.sleep(1)
    print({role: tuple(round(size, 1) for size in both) for role, both in sizes.items()})
    assert sizes["launcher-monitor"][0] <= MONITOR_MB
    assert resident <= RESIDENT_MB, sizes
    assert proportional <= PROPORTIONAL_MB, sizes


@report("B43")
def test_a_whole_life(guest: Guest, libvirt_cache: Path) -> None:
    with launcher_pod(guest, libvirt_cache, grace=600) as pod:
        pod.vmi = pod_vmi()

        async def scenario(agent: FakeAgent) -> None:
            assert not (pod.share / "sockets/launcher-init-sock").exists(), "renamed when it can be used"
            assert pod.socket.stat().st_mode & 0o007 == 0, "for root and the launcher's user alone"
            (pod.share / "container-disks/disk_0.sock").touch()
            await start(pod, agent)
            first = agent.heard[0]
            # As it is defined; or, when it is looked at a moment later, about to be started.
            assert first.kind == "ADDED"
            assert first.state in (("Shutoff", "Unknown"), ("Paused", "StartingUp"))
            running = await agent.until(is_running, "that the guest runs")
            assert running.content["ObjectMeta"]["uid"] == UID
            assert running.content["Spec"]["Metadata"]["KubeVirt"]["UID"] == UID
            assert running.content["Spec"]["Devices"]["Channels"]
            await booted(pod)

            await agent.until(
                lambda one: (
                    one.kind != "EVENT" and one.content["Status"]["FSFreezeStatus"]["Status"] == "thawed"
                ),
                "the agent",
            )
            told = await agent.until(knows_guest, "what the guest is")
            assert told.content["Status"]["OSInfo"]["Machine"] == "x86_64"
            async with agent.commands(patient=True) as client:
                assert json.loads(await client.guest_info())["guestAgentVersion"]
                report = await get_memory_report(client.channel)
                assert {one["role"] for one in report["processes"]} >= {
                    "launcher",
                    "launcher-monitor",
                    "qemu",
                }

            await check_memory(pod, agent)
            pids = pod.pids()
            assert set(pids) == {"launcher-monitor", "launcher", "virtlogd", "virtqemud", "qemu"}
            # A guest whose agent died is asked by its power button, and does not cost the grace period.
            await asyncio.to_thread(pod.type, "killall qemu-ga")
            await asyncio.to_thread(
                wait_until, lambda: "the guest agent is away" in pod.log, 120, "an agent's end"
            )
            pod.terminate()
            told = await agent.until(marked, "that the VM is to be stopped")
            assert told.state[0] == "Running", "the stop is the agent's to do"
            # Heard of long before the grace period of ten minutes is over.
            await agent.until(
                lambda one: one.kind != "EVENT" and one.state == ("Shutoff", "Shutdown"), "a clean end"
            )
            gone = await agent.until(lambda one: one.gone, "that the domain is gone")
            assert gone.state == ("NoState", "NonExistent")
            assert await ended(pod) == 0
            pod.assert_nothing_left(pids)
            assert not pod.socket.exists()
            assert not (pod.share / "container-disks/disk_0.sock").exists(), "container disks end with the VM"
            assert [one.kind for one in agent.heard].count("ADDED") == 1

        drive(pod, scenario)


def test_a_guest_that_powers_off_by_itself(guest: Guest, libvirt_cache: Path) -> None:
    with launcher_pod(guest, libvirt_cache) as pod:
        pod.vmi = pod_vmi("kvnode.poweroff")

        async def scenario(agent: FakeAgent) -> None:
            await sync(agent, pod.vmi_json)
            end = await agent.until(
                lambda one: one.kind != "EVENT" and one.state[0] == "Shutoff" and one.state[1] != "Unknown",
                "its end",
            )
            assert end.state == ("Shutoff", "Shutdown")
            assert await ended(pod) == 0

        drive(pod, scenario)


def test_a_guest_that_panics(guest: Guest, libvirt_cache: Path) -> None:
    with launcher_pod(guest, libvirt_cache) as pod:
        pod.vmi = pod_vmi()
        pod.vmi["spec"]["domain"]["devices"]["panicDevices"] = [{"model": "isa"}]

        async def scenario(agent: FakeAgent) -> None:
            await start(pod, agent)
            # What the pvpanic driver of a guest does when its kernel panics: 1 to port 0x505.
            await asyncio.to_thread(pod.monitor_command, "o /b 0x505 1")
            event = await agent.until(lambda one: one.kind == "EVENT", "the event of the panic")
            assert (event.content["reason"], event.content["type"]) == ("GuestPanicked", "Warning")
            told = await agent.until(
                lambda one: one.kind != "EVENT" and one.content["Status"]["PanicCount"] == 1,
                "the panic's count",
            )
            assert told.content["Status"]["GuestPanicInfo"]["Type"]
            assert await ended(pod) == 0

        drive(pod, scenario)


async def refuses_what_libvirt_does(pod: Pod, agent: FakeAgent) -> None:
    """The agent is told in libvirt's words, and may try again."""
    broken = json.loads(pod.vmi_json)
    broken["spec"]["domain"]["machine"] = {"type": "no-such-machine"}
    with pytest.raises(RpcError, match="LibvirtError"):
        await sync(agent, json.dumps(broken).encode())


def test_after_the_grace_period_the_guest_is_ended(guest: Guest, libvirt_cache: Path) -> None:
    """The agent does not stop it (it is away, say); the launcher does so when the time is over, not before."""
    with launcher_pod(guest, libvirt_cache, grace=3) as pod:
        pod.vmi = pod_vmi()

        async def scenario(agent: FakeAgent) -> None:
            await refuses_what_libvirt_does(pod, agent)
            await start(pod, agent)
            began = time.monotonic()
            pod.terminate()
            await agent.until(marked, "that the VM is to be stopped")
            await agent.until(
                lambda one: one.kind != "EVENT" and one.state == ("Shutoff", "Destroyed"), "its end"
            )
            assert time.monotonic() - began >= 3
            async with agent.commands() as client:
                await client.vmi_command("DeleteVirtualMachine", pod.vmi_json)
            assert await ended(pod) == 0

        drive(pod, scenario, obedient=False)


def test_without_an_agent_the_power_button_is_pressed(guest: Guest, libvirt_cache: Path) -> None:
    vmi = pod_vmi()
    environment = {"STANDALONE_VMI": json.dumps(vmi)}
    with launcher_pod(guest, libvirt_cache, "--standalone", grace=600, environment=environment) as pod:
        wait_for_text(pod.serial, "kvnode-guest: up after")
        pids = pod.pids()
        pod.terminate()
        assert pod.wait() == 0
        assert "grace period is over" not in pod.log
        pod.assert_nothing_left(pids)


def test_without_an_agent_the_status_tells_of_a_crash(guest: Guest, libvirt_cache: Path) -> None:
    environment = {"STANDALONE_VMI": json.dumps(pod_vmi())}
    with launcher_pod(guest, libvirt_cache, "--standalone", environment=environment) as pod:
        wait_for_text(pod.serial, "kvnode-guest: up after")
        pids = pod.pids()
        pod.kill("qemu")
        assert pod.wait() == 1
        pod.assert_nothing_left(pids)


@pytest.mark.parametrize(
    ("flags", "outcome"),
    [
        (("--qemu-timeout", "3s"), (False, 1, "no domain was defined within 3 s")),
        ((), (True, 0, "received SIGTERM")),
        (("--simulate-crash",), (False, 1, "--simulate-crash")),
        (("--hook-sidecars", "1"), (False, 1, "hook sidecars are not supported")),
        (("--no-such-flag",), (False, 2, "unknown flag --no-such-flag")),
    ],
)
def test_ends_without_a_vm(
    guest: Guest, libvirt_cache: Path, flags: tuple[str, ...], outcome: tuple[bool, int, str]
) -> None:
    stop, status, told = outcome
    with launcher_pod(guest, libvirt_cache, *flags) as pod:
        if stop:
            wait_until(pod.socket.exists, 120, "the socket")
            pod.terminate()
        assert pod.wait() == status
        assert told in pod.log


@report("B45")
def test_a_daemon_that_does_not_stay_ends_the_pod(guest: Guest, libvirt_cache: Path) -> None:
    """A pod that never gets ready tells nobody why; one that failed does."""
    with launcher_pod(guest, libvirt_cache, daemon_conf="this is no configuration\n") as pod:
        assert pod.wait() == 1
        assert "virtqemud ends as soon as it is started" in pod.log


@pytest.mark.parametrize("user", [107, 64055])
def test_without_root(guest: Guest, libvirt_cache: Path, user: int) -> None:
    """As any user that has a passwd entry: 107 is that of KubeVirt's image, the other that of Debian's libvirt."""
    with launcher_pod(guest, libvirt_cache, "--run-as-nonroot", user=user) as pod:
        pod.vmi = pod_vmi()

        async def scenario(agent: FakeAgent) -> None:
            (pod.share / "domain-notify-pipe.sock").chmod(0o666)  # the real agent shares its group
            await start(pod, agent)
            await booted(pod)
            await agent.until(knows_guest, "what the guest is")
            assert set(pod.pids()) == {"launcher-monitor", "launcher", "virtlogd", "virtqemud", "qemu"}
            for pid in pod.pids().values():
                assert re.search(rf"^Uid:(\s+{user}){{4}}\s", Path(f"/proc/{pid}/status").read_text(), re.M)
            pids = pod.pids()
            pod.terminate()
            await agent.until(lambda one: one.gone, "the end")
            assert await ended(pod) == 0
            pod.assert_nothing_left(pids)

        try:
            drive(pod, scenario)
        finally:
            print(pod.log)
