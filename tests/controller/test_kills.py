"""Leaders killed at random moments in the midst of their work: nothing is made twice, nothing is forgotten."""

from __future__ import annotations

import asyncio
import random
import secrets
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from kvnode.kube.client import Client
from kvnode.kube.resources import CONTROLLER_REVISIONS, PODS, VIRTUAL_MACHINE_INSTANCES, VIRTUAL_MACHINES
from tests.cluster.audit import made
from tests.cluster.cluster import Cluster, up
from tests.cluster.fixtures import make_namespace
from tests.controller.processes import controller
from tests.controller.standin import StandIn
from tests.controller.test_manager import machine
from tests.controller.test_process import holder, many_ready, ready
from tests.kube.loops import minutes, now
from tests.kube.support import background, client_of

pytestmark = pytest.mark.cluster

DURATION, DEADLINE, RETRY = 7.0, 5.0, 0.5
"""Seconds of an election that is over sooner than the ordinary one, and is not lost by a busy machine."""
TIMES = (
    *("--leader-elect-lease-duration", str(DURATION)),
    *("--leader-elect-renew-deadline", str(DEADLINE)),
    *("--leader-elect-retry-period", str(RETRY)),
)
KILLS = 10
PER_KILL = 3
"""VMs that are created before each."""
LONGEST = 0.8
"""Seconds from their creation to the kill, at most."""
LATE = 20.0
"""Seconds that a takeover may last beyond the lease: a try with its jitter, the watches, and a busy machine."""


class Replicas:
    """Controllers of which one leads; a killed one is replaced at once."""

    def __init__(self, cluster: Cluster, namespace: str, logs: Path, held: ExitStack, *times: str) -> None:
        self._cluster, self._namespace, self._logs, self._held = cluster, namespace, logs, held
        self._times = times
        self.running: list[tuple[subprocess.Popen[bytes], Path]] = []
        self._count = 0

    def add(self) -> None:
        """Start one more."""
        self._count += 1
        log = self._logs / f"controller-{self._count}"
        config, namespace = self._cluster.kubeconfig, self._namespace
        started = controller(config, log, *self._times, namespace=namespace)
        self.running.append((self._held.enter_context(started), log))

    def kill(self, identity: str) -> None:
        """Kill the one of that identity (it told so when it began to lead) and start another."""
        leader = self._leader(identity)
        assert leader[0].poll() is None
        leader[0].kill()
        leader[0].wait()
        self.running.remove(leader)
        self.add()

    def _leader(self, identity: str) -> tuple[subprocess.Popen[bytes], Path]:
        """The one that told that it leads, which it does after it has the Lease."""
        deadline = now() + 60
        while True:
            for one in self.running:
                if f"{identity}: leading" in one[1].read_text():
                    return one
            assert now() < deadline, f"{identity} does not lead"
            time.sleep(0.01)

    def check(self) -> None:
        """All that were not killed live."""
        for process, log in self.running:
            assert process.poll() is None, log.read_text()


@pytest.fixture(scope="module")
def audited() -> Iterator[Cluster]:
    """An API server that writes down all that is made."""
    cluster = up(lambda line: print(line, file=sys.stderr), audit=True)
    yield cluster
    cluster.down()


@pytest.fixture
def namespace(audited: Cluster) -> str:
    """A namespace of that one."""
    return make_namespace(audited)


async def in_order(cluster: Cluster, client: Client, namespace: str, nodes: StandIn, count: int) -> None:
    """Every VM has one VMI, one pod and one revision, and never had another, however briefly."""
    kinds = (VIRTUAL_MACHINES, VIRTUAL_MACHINE_INSTANCES, PODS, CONTROLLER_REVISIONS)
    # One that was killed while it asked may have been answered to nobody, and what it made is then not counted here.
    counts = made(cluster, namespace)
    assert all(count - KILLS <= counts[one.plural] <= count for one in kinds), counts
    assert nodes.twice() == []
    assert len(nodes.vmis) == len(nodes.pods) == count
    for resource in kinds:
        assert len(await client.list_all(resource, namespace)) == count, resource


@minutes(6)
async def test_ten_leaders_killed_at_random(audited: Cluster, namespace: str, tmp_path: Path) -> None:
    seed = secrets.randbelow(2**32)
    print(f"seed {seed}")
    source = random.Random(seed)  # noqa: S311 — a test's
    unfinished = 0
    with ExitStack() as held:
        replicas = Replicas(audited, namespace, tmp_path, held, *TIMES)
        replicas.add()
        replicas.add()
        async with client_of(audited) as user:
            nodes = StandIn(user, namespace)
            leader = await holder(user, namespace)
            async with background(nodes.run()):
                for kill in range(KILLS):
                    new = [f"vm{kill}-{number}" for number in range(PER_KILL)]
                    for name in new:
                        await user.create(VIRTUAL_MACHINES, machine(namespace, name))
                    await asyncio.sleep(source.uniform(0, LONGEST))
                    replicas.kill(leader)
                    killed = now()
                    unfinished += len(set(new) - set(await ready(user, namespace)))
                    leader = await holder(user, namespace, leader)
                    assert now() - killed <= DURATION + LATE, f"kill {kill}"
                await many_ready(user, namespace, KILLS * PER_KILL)
                replicas.check()
            await in_order(audited, user, namespace, nodes, KILLS * PER_KILL)
    assert unfinished > 0, "they were killed too late: nothing was under way"


@minutes(3)
async def test_a_leader_killed_with_the_ordinary_lease(
    audited: Cluster, namespace: str, tmp_path: Path
) -> None:
    count = 5
    with ExitStack() as held:
        replicas = Replicas(audited, namespace, tmp_path, held)
        replicas.add()
        replicas.add()
        async with client_of(audited) as user:
            nodes = StandIn(user, namespace)
            leader = await holder(user, namespace)
            async with background(nodes.run()):
                for number in range(count):
                    await user.create(VIRTUAL_MACHINES, machine(namespace, f"vm{number}"))
                replicas.kill(leader)
                killed = now()
                async with asyncio.timeout(120):
                    while await holder(user, namespace) == leader:
                        await asyncio.sleep(0.1)
                assert now() - killed <= 15 + 2 * 1.2 + LATE
                await many_ready(user, namespace, count)
            await in_order(audited, user, namespace, nodes, count)
