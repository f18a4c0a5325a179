"""A VM that the kernel kills for want of memory has failed, and says why."""

from __future__ import annotations

import asyncio
import os
import socket
from pathlib import Path

import pytest

from tests.conftest import Guest
from tests.launcher.agent import FakeAgent
from tests.launcher.pod.driving import booted, drive, ended, start
from tests.launcher.pod.memory_limit import memory_group
from tests.launcher.pod.pod import Pod, launcher_pod, pod_vmi

pytestmark = pytest.mark.integration

MB = 1 << 20


def fill_memory(pod: Pod) -> None:
    """Have the guest write to memory that it has not used before, until its QEMU has ended."""
    with socket.socket(socket.AF_UNIX) as console:
        console.settimeout(300)
        console.connect(str(pod.serial.with_name("virt-serial0")))
        # More than is spared even when all that the kernel keeps of files for this pod is given up.
        console.sendall(
            b"\nmount -t tmpfs -o size=100% fill /mnt; dd if=/dev/urandom of=/mnt/fill bs=1M count=240\n"
        )
        while console.recv(4096):
            continue


def test_an_out_of_memory_kill_is_not_taken_for_success(guest: Guest, libvirt_cache: Path) -> None:
    with (
        memory_group(f"kvnode-oom-{os.getpid()}") as group,
        launcher_pod(guest, libvirt_cache) as pod,
    ):
        pod.vmi = pod_vmi(memory="384Mi")

        async def scenario(agent: FakeAgent) -> None:
            await asyncio.to_thread(group.add, pod)
            await start(pod, agent)
            await booted(pod)
            pids = pod.pids()
            group.leave(32 * MB)
            await asyncio.to_thread(fill_memory, pod)
            told = await agent.until(lambda one: one.kind == "EVENT", "why it ended")
            assert (told.content["type"], told.content["reason"]) == ("Warning", "OOMKilled")
            assert "killed: out of memory" in told.content["message"]
            await agent.until(
                lambda one: one.kind != "EVENT" and one.state == ("Shutoff", "Crashed"), "the VM's failure"
            )
            assert await ended(pod) == 0
            assert "killed: out of memory" in pod.log
            pod.assert_nothing_left(pids)

        drive(pod, scenario)


def test_another_kill_is_not_blamed_on_memory(guest: Guest, libvirt_cache: Path) -> None:
    with launcher_pod(guest, libvirt_cache) as pod:
        pod.vmi = pod_vmi()

        async def scenario(agent: FakeAgent) -> None:
            await start(pod, agent)
            pod.kill("qemu")
            assert await ended(pod) == 0
            assert "out of memory" not in pod.log

        drive(pod, scenario)
