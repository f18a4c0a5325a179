"""``kvnode controller`` as it is run: several processes, of which one leads, against a real API server."""

from __future__ import annotations

import signal
import subprocess
from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path

import pytest

from kvnode.cli import exitcodes
from kvnode.kube.client import Client
from kvnode.kube.resources import LEASES, PODS, VIRTUAL_MACHINES
from tests.cluster.cluster import Cluster
from tests.controller.processes import DURATION, TIMES, controller
from tests.controller.standin import StandIn
from tests.controller.test_manager import eventually, machine
from tests.kube.loops import now, real_time
from tests.kube.support import background, client_of

pytestmark = pytest.mark.cluster

Start = Callable[..., AbstractContextManager[subprocess.Popen[bytes]]]
LEASE = "virt-controller"


async def holder(client: Client, namespace: str, other_than: str = "") -> str:
    """Wait for a leader; the answer is its identity."""

    async def check() -> str:
        lease = await client.get(LEASES, LEASE, namespace)
        found = str(lease["spec"].get("holderIdentity") or "")
        return found if found != other_than else ""

    name: str = await eventually(check)
    return name


async def ready(client: Client, namespace: str) -> list[str]:
    """Names of the VMs that run and say so."""
    vms = await client.list_all(VIRTUAL_MACHINES, namespace)
    return [
        vm["metadata"]["name"]
        for vm in vms
        if vm.get("status", {}).get("ready") and vm["status"].get("printableStatus") == "Running"
    ]


async def many_ready(client: Client, namespace: str, count: int) -> None:
    """Wait until so many VMs run."""

    async def check() -> bool:
        return len(await ready(client, namespace)) >= count

    await eventually(check, 180)


async def ended(process: subprocess.Popen[bytes]) -> int:
    """Wait for the end of a process; the answer is its exit code."""

    async def check() -> tuple[int] | None:
        code = process.poll()
        return None if code is None else (code,)

    code: int = (await eventually(check))[0]
    return code


@pytest.fixture
def start(control_plane: Cluster, namespace: str, tmp_path: Path) -> Start:
    """Starts a controller by a name for its log."""
    return lambda name, *more: controller(
        control_plane.kubeconfig, tmp_path / name, *TIMES, *more, namespace=namespace
    )


@real_time
async def test_a_standby_takes_over_from_a_leader_that_was_killed(
    control_plane: Cluster, namespace: str, start: Start
) -> None:
    count = 20
    async with client_of(control_plane) as user:
        nodes = StandIn(user, namespace)
        with start("first") as first:
            leader = await holder(user, namespace)
            with start("second"):
                async with background(nodes.run()):
                    for number in range(count):
                        await user.create(VIRTUAL_MACHINES, machine(namespace, f"vm{number}"))
                    await many_ready(user, namespace, 2)
                    first.kill()
                    killed = now()
                    before = len(await ready(user, namespace))
                    await holder(user, namespace, leader)
                    taken = now() - killed
                    await many_ready(user, namespace, count)
    assert before < count, "it was killed too late"
    assert taken <= DURATION + 2 * 0.5 * 1.2 + 20  # the lease, a try, and what a busy machine needs
    assert nodes.twice() == []
    assert len(nodes.pods) == len(nodes.vmis) == count


@real_time
async def test_told_to_end_it_gives_the_lease_back(
    control_plane: Cluster, namespace: str, start: Start
) -> None:
    async with client_of(control_plane) as user:
        with start("only") as process:
            await holder(user, namespace)
            process.send_signal(signal.SIGTERM)
            assert await ended(process) == exitcodes.OK
        lease = await user.get(LEASES, LEASE, namespace)
        assert lease["spec"]["holderIdentity"] == ""


@real_time
async def test_a_leader_that_slept_too_long_ends(
    control_plane: Cluster, namespace: str, start: Start, tmp_path: Path
) -> None:
    async with client_of(control_plane) as user:
        with start("sleeper") as sleeper:
            leader = await holder(user, namespace)
            with start("other"):
                sleeper.send_signal(signal.SIGSTOP)
                await holder(user, namespace, leader)
                sleeper.send_signal(signal.SIGCONT)
                assert await ended(sleeper) == exitcodes.LEADERSHIP_LOST
    last = (tmp_path / "sleeper").read_text().splitlines()[-1]
    assert last.startswith("kvnode: lease ")
    assert last.endswith("another may lead now")


@real_time
async def test_without_an_election(control_plane: Cluster, namespace: str, start: Start) -> None:
    async with client_of(control_plane) as user:
        nodes = StandIn(user, namespace)
        image = "example.test/launcher:1"
        with start("alone", "--no-leader-elect", "--launcher-image", image) as process:
            async with background(nodes.run()):
                await user.create(VIRTUAL_MACHINES, machine(namespace, "alone"))
                await many_ready(user, namespace, 1)
            assert await user.list_all(LEASES, namespace) == []
            process.send_signal(signal.SIGTERM)
            assert await ended(process) == exitcodes.OK
        pods = await user.list_all(PODS, namespace)
        assert pods
        assert {one["image"] for pod in pods for one in pod["spec"]["containers"]} >= {image}
