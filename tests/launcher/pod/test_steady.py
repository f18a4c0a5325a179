"""What comes again and again leaves nothing behind: questions by the thousand, and a VM that cannot be started."""

from __future__ import annotations

import asyncio
import re
from dataclasses import dataclass
from pathlib import Path

import pytest

from kvnode.rpc.cmd import CmdClient
from kvnode.rpc.errors import RpcError
from tests.conftest import Guest
from tests.launcher.agent import FakeAgent
from tests.launcher.pod.driving import drive, ended
from tests.launcher.pod.pod import OPTIONS, Pod, launcher_pod, pod_vmi

pytestmark = pytest.mark.integration


@dataclass(frozen=True)
class Holdings:
    """What a process holds."""

    descriptors: int
    threads: int
    resident: int
    """Bytes."""

    @classmethod
    def of(cls, pid: int) -> Holdings:
        """Read them."""
        status = Path(f"/proc/{pid}/status").read_text()
        threads, resident = (
            int(re.findall(rf"^{name}:\s+(\d+)", status, re.M)[0]) for name in ("Threads", "VmRSS")
        )
        return cls(len(list(Path(f"/proc/{pid}/fd").iterdir())), threads, resident * 1024)


async def settled(pid: int, before: Holdings) -> Holdings:
    """What a process holds once it has let go of what it will: connections close a little later."""
    for _ in range(300):
        now = Holdings.of(pid)
        if now.descriptors <= before.descriptors and now.threads <= before.threads:
            break
        await asyncio.sleep(0.2)
    return now


async def ping_thousands(client: CmdClient, times: int = 1000) -> None:
    """Each is answered; a hundred are under way at once."""
    gate = asyncio.Semaphore(100)

    async def one() -> None:
        async with gate:
            await client.ping()

    await asyncio.gather(*(one() for _ in range(times)))


def test_a_thousand_pings_are_answered_and_nothing_is_left_of_them(guest: Guest, libvirt_cache: Path) -> None:
    with launcher_pod(guest, libvirt_cache) as pod:

        async def scenario(agent: FakeAgent) -> None:
            launcher = pod.pids()["launcher"]
            async with agent.commands() as client:
                await ping_thousands(client)  # what the first ones need is kept
                before = Holdings.of(launcher)
                for _ in range(3):
                    await ping_thousands(client)
            for _ in range(50):  # and as many that come and go
                async with agent.commands() as client:
                    await client.ping()
            after = await settled(launcher, before)
            assert after.descriptors <= before.descriptors
            assert after.threads <= before.threads
            assert after.resident <= before.resident + (2 << 20)

        drive(pod, scenario)


def impossible() -> dict[str, object]:
    """A VM with more memory than any machine has."""
    return pod_vmi(memory="900Ti")


async def refusals(pod: Pod, agent: FakeAgent, times: int) -> list[str]:
    """What an agent is told that tries as often as that."""
    said = []
    for _ in range(times):
        async with agent.commands() as client:
            with pytest.raises(RpcError) as caught:
                await client.sync(pod.vmi_json, OPTIONS)
        said.append(str(caught.value))
        await asyncio.sleep(0.3)  # the agent hears of it, and deletes the domain
    return said


def test_a_vm_that_cannot_be_started_is_refused_each_time_and_leaves_nothing(
    guest: Guest, libvirt_cache: Path
) -> None:
    with launcher_pod(guest, libvirt_cache) as pod:
        pod.vmi = impossible()

        async def scenario(agent: FakeAgent) -> None:
            pids = pod.pids()
            assert await refusals(pod, agent, 3)
            before = {role: Holdings.of(pids[role]) for role in ("launcher", "virtqemud", "virtlogd")}
            lines = pod.log.count("\n")
            said = await refusals(pod, agent, 10)
            assert all("cannot set up guest memory" in one and "\n" not in one for one in said), said
            for role, held in before.items():
                after = await settled(pids[role], held)
                assert after.descriptors <= held.descriptors, role
                assert after.threads <= held.threads, role
                assert after.resident <= held.resident + (4 << 20), role
            assert pod.log.count("\n") - lines <= 10 * 20, "no flood"
            assert "qemu" not in pod.pids()
            assert pod.running, "the agent decides when it is enough"
            pod.terminate()
            assert await ended(pod) == 0
            pod.assert_nothing_left(pids)

        drive(pod, scenario)
