"""A launcher pod from its start to its end, driven as the reference's node agent drives its own."""

from __future__ import annotations

import asyncio
import time
from pathlib import Path

import pytest

from tests.conftest import Guest
from tests.launcher.agent import FakeAgent
from tests.launcher.pod.pod import OPTIONS, launcher_pod, pod_vmi
from tests.standalone.helpers import wait_for_text, wait_until

pytestmark = pytest.mark.integration


def test_first(guest: Guest, libvirt_cache: Path) -> None:
    agent = None
    began = time.monotonic()
    with launcher_pod(guest, libvirt_cache) as pod:
        try:
            wait_until(pod.socket.exists, 30, "the socket")
            print("socket after", time.monotonic() - began)

            async def body() -> None:
                nonlocal agent
                async with FakeAgent(pod.share, obedient=True) as agent:
                    pod.vmi = pod_vmi()
                    agent.vmi = pod.vmi_json
                    async with agent.commands() as client:
                        t = time.monotonic()
                        await client.sync(pod.vmi_json, OPTIONS)
                        print("sync", time.monotonic() - t)
                    await agent.until(lambda h: h.state == ("Running", "Unknown"), "running")
                    await asyncio.to_thread(wait_for_text, pod.serial, "kvnode-guest: up after")
                    pids = pod.pids()
                    print(pids)
                    await agent.until(lambda h: h.kind != "EVENT" and h.content["Status"]["OSInfo"]["KernelRelease"], "os info", 20)
                    pod.terminate()
                    await agent.until(lambda h: h.gone, "gone")
                    assert await asyncio.to_thread(pod.wait) == 0
                    pod.assert_nothing_left(pids)

            asyncio.run(body())
        finally:
            print(pod.log)
            print(agent.heard[-1].content["Status"])
