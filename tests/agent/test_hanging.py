"""More launchers that hang than the agent has workers."""

from __future__ import annotations

import os

import pytest

from tests.agent.lab import called, lab, unhurt, until
from tests.agent.node import configuration
from tests.cluster.cluster import Cluster
from tests.kube.loops import minutes

__all__ = ["configuration"]

pytestmark = [
    pytest.mark.cluster,
    pytest.mark.skipif(os.geteuid() != 0, reason="launchers have roots of their own"),
]


@minutes(5)
async def test_they_do_not_take_all_that_the_agent_has(control_plane: Cluster, namespace: str) -> None:
    """Whoever owns them can have as many as they like: other VMs start meanwhile."""
    async with lab(control_plane, namespace) as node, node.agent() as agent:
        count = node.settings.workers + 2
        hang = [await node.launch(f"hangs{number}", failure="played") for number in range(count)]
        for remote in hang:
            await called(remote, "sync")
            await remote.do("stall", "SyncVirtualMachine")
            await remote.do("say", "failure", "")
        for remote in hang:
            await remote.become("Running", "Unknown")  # as soon as they say so they are looked at anew
        await until(lambda: len(agent.queue.running()) == count, 120)
        other = await node.run("other")
        assert unhurt([*hang, other])
