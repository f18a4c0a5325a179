"""Kills of a pod's processes, and what becomes of the VM after them."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import threading
import time
from collections.abc import Callable
from pathlib import Path

from kvnode.rpc.errors import RpcError
from tests.launcher.agent import FakeAgent, Heard
from tests.launcher.pod.driving import ended, is_running, knows_guest
from tests.launcher.pod.pod import NAME, NAMESPACE, OPTIONS, Pod
from tests.standalone.helpers import wait_until


async def killed_and_back(pod: Pod, role: str) -> None:
    """Kill a daemon, and wait until it runs again."""
    before = pod.kill(role)
    await asyncio.to_thread(
        wait_until, lambda: pod.pids().get(role, before) != before, 120, f"a new {role}; the log:\n{pod.log}"
    )


def ended_as(state: str, reason: str) -> Callable[[Heard], bool]:
    """A domain event of that state."""

    def matches(heard: Heard) -> bool:
        return heard.kind != "EVENT" and heard.state == (state, reason)

    return matches


def crashed(heard: Heard) -> bool:
    """A domain event that makes the VMI Failed."""
    return heard.kind != "EVENT" and heard.state == ("Shutoff", "Crashed")


async def start_anyhow(pod: Pod, agent: FakeAgent) -> bool:
    """Have the VM started by an agent that tries again, as the real one does.

    False when the agent was told instead that it crashed, which is the VM's failure. A pod that ends without either
    would pass for a VM that ended well.
    """
    until = time.monotonic() + 240
    while time.monotonic() < until and pod.running and not any(map(crashed, agent.heard)):
        with contextlib.suppress(RpcError, AssertionError):
            async with agent.commands() as client:
                await client.sync(pod.vmi_json, OPTIONS)
            await agent.until(is_running, "that the guest runs", 10)
            return True
        await asyncio.sleep(1)
    assert any(map(crashed, agent.heard)), f"neither started nor failed; the launcher's log:\n{pod.log}"
    return False


def pid_file(pod: Pod) -> Path:
    """Where libvirt writes QEMU's process id: before QEMU runs, which others do that are asked for their version."""
    directory = pod.directory / "run/libvirt/qemu"
    rootless = directory / "run"
    return (rootless if rootless.exists() else directory) / f"{NAMESPACE}_{NAME}.pid"


def kill_with_qemu(pod: Pod, daemon: int, delay: float) -> threading.Thread:
    """SIGKILL ``daemon`` some seconds after the file with QEMU's process id has come, which is watched for without
    a pause: the process waits for its daemon's word for some milliseconds only.
    """
    file = pid_file(pod)
    until = time.monotonic() + 60

    def watch() -> None:
        while time.monotonic() < until:
            with contextlib.suppress(OSError):
                if file.stat().st_size:
                    break
        time.sleep(delay)
        os.kill(daemon, signal.SIGKILL)

    thread = threading.Thread(target=watch, daemon=True)
    thread.start()
    return thread


async def its_end(pod: Pod, agent: FakeAgent, started: bool) -> None:
    """A VM that started goes on, and stops when it is asked to; nothing is left of it, nor of one that failed."""
    pids = pod.pids()
    if started:
        # Not by its serial log, which ends with the log daemon that was killed.
        await agent.until(knows_guest, "that its system is up", 120)
        assert pod.running
        assert not any(map(crashed, agent.heard)), f"it started, then crashed; the launcher's log:\n{pod.log}"
        pod.terminate()
    await agent.until(lambda one: one.gone, "the end")
    assert await ended(pod) == 0
    pod.assert_nothing_left(pids)
    assert "Traceback" not in pod.log
