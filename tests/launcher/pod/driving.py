"""What an agent does with a launcher pod, in steps that tests put together."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

from kvnode.rpc.cmd_v1_pb2 import VirtualMachineOptions
from tests.launcher.agent import FakeAgent, Heard
from tests.launcher.pod.pod import OPTIONS, Pod
from tests.standalone.helpers import wait_for_text, wait_until


def drive(pod: Pod, scenario: Callable[[FakeAgent], Awaitable[None]], *, obedient: bool = True) -> None:
    """Play a scenario with an agent beside a launcher that is ready."""

    async def play() -> None:
        async with FakeAgent(pod.share, obedient=obedient) as agent:
            agent.vmi = pod.vmi_json
            await scenario(agent)

    wait_until(pod.socket.exists, 120, f"the launcher's socket; its log:\n{pod.log}")
    asyncio.run(play())


async def sync(agent: FakeAgent, vmi: bytes, options: VirtualMachineOptions = OPTIONS) -> None:
    """One Sync, to its end."""
    async with agent.commands(patient=True) as client:
        await client.sync(vmi, options)


async def start(pod: Pod, agent: FakeAgent, options: VirtualMachineOptions = OPTIONS) -> None:
    """Have the VM started, and wait until the agent has heard that it runs."""
    await sync(agent, pod.vmi_json, options)
    await agent.until(is_running, "that the guest runs")


async def booted(pod: Pod) -> None:
    """Wait until the guest's system is up."""
    await asyncio.to_thread(wait_for_text, pod.serial, "kvnode-guest: up after")


async def ended(pod: Pod, seconds: float = 120) -> int:
    """The container's exit status."""
    return await asyncio.to_thread(pod.wait, seconds)


def is_running(heard: Heard) -> bool:
    """A domain event of a guest that runs."""
    return heard.kind != "EVENT" and heard.state[0] == "Running"


def knows_guest(heard: Heard) -> bool:
    """A domain event with what the guest's agent told."""
    return heard.kind != "EVENT" and bool(heard.content["Status"]["OSInfo"]["Machine"])


def marked(heard: Heard) -> bool:
    """A domain event that asks the agent to stop the VM."""
    if heard.kind == "EVENT":
        return False
    grace = heard.content["Spec"]["Metadata"]["KubeVirt"]["GracePeriod"] or {}
    return bool(grace.get("MarkedForGracefulShutdown"))
