"""Many VMs at once on a real API server: ``python -m bench.controller_load --vms 100``.

A control plane is brought up for it, with an audit log; `kvnode controller` runs in a process of its own, with the
rights of an administrator. Scheduler, kubelet and node agent are played by a stand-in, which makes every pod and guest
run at once (`tests/controller/standin.py`). Printed as JSON: seconds from the first creation until all VMs are Ready,
calls a VM by verb and resource, calls that were refused, resident size.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import statistics
import sys
import time
from pathlib import Path
from typing import Any

from bench.controller_audit import calls, parts_of
from kvnode.kube.client import Client
from kvnode.kube.errors import NotFound
from kvnode.kube.objects import Object, timestamp, utc_now
from kvnode.kube.resources import LEASES, VIRTUAL_MACHINE_INSTANCES, VIRTUAL_MACHINES
from tests.cluster.cluster import Cluster, up
from tests.cluster.fixtures import make_namespace
from tests.controller.processes import controller
from tests.controller.standin import StandIn
from tests.kube.support import background, client_of

SIDE_BY_SIDE = 16
"""Creations under way at once."""


def machine(namespace: str, name: str) -> Object:
    """A VM as in the reference's run: a container disk, an interface, and no defaults."""
    devices = {
        "disks": [{"name": "d", "disk": {"bus": "virtio"}}],
        "interfaces": [{"name": "default", "masquerade": {}}],
    }
    spec = {
        "domain": {"resources": {"requests": {"memory": "64Mi"}}, "devices": devices},
        "networks": [{"name": "default", "pod": {}}],
        "volumes": [{"name": "d", "containerDisk": {"image": "kvnode.test/demo:1"}}],
    }
    return {
        "apiVersion": "kubevirt.io/v1",
        "kind": "VirtualMachine",
        "metadata": {"name": name, "namespace": namespace},
        "spec": {
            "runStrategy": "Always",
            "template": {"metadata": {"labels": {"vm": name}}, "spec": spec},
        },
    }


def resident(pid: int) -> float:
    """Resident size of a process at its largest, MiB (proc(5), VmHWM)."""
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith("VmHWM:"):
            return int(line.split()[1]) / 1024
    return 0.0


async def led(client: Client, namespace: str) -> None:
    """Wait until the controller leads."""
    while True:
        try:
            lease = await client.get(LEASES, "virt-controller", namespace)
            if lease["spec"].get("holderIdentity"):
                return
        except NotFound:
            pass
        await asyncio.sleep(0.05)


async def create(client: Client, namespace: str, count: int) -> None:
    """Create the VMs, some side by side."""
    turns = asyncio.Semaphore(SIDE_BY_SIDE)

    async def one(number: int) -> None:
        async with turns:
            await client.create(VIRTUAL_MACHINES, machine(namespace, f"vm-{number}"))

    await asyncio.gather(*(one(number) for number in range(count)))


async def all_ready(client: Client, namespace: str, count: int, limit: float) -> None:
    """Wait until so many VMs are Ready and say Running.

    Raises:
        TimeoutError: they are not after so many seconds.
    """
    async with asyncio.timeout(limit):
        while True:
            vms = await client.list_all(VIRTUAL_MACHINES, namespace)
            told = [vm.get("status", {}) for vm in vms]
            if (
                sum(1 for one in told if one.get("ready") and one.get("printableStatus") == "Running")
                == count
            ):
                return
            await asyncio.sleep(0.5)


async def restart(client: Client, namespace: str, name: str) -> tuple[str, float, float]:
    """Let a guest crash and wait for its next VMI; the answer is when the VM was there as Failed, and as new."""
    before = await client.get(VIRTUAL_MACHINE_INSTANCES, name, namespace)
    seen = {"phase": "Failed", "phaseTransitionTimestamp": timestamp(utc_now())}
    patch = [
        {"op": "replace", "path": "/status/phase", "value": "Failed"},
        {"op": "add", "path": "/status/phaseTransitionTimestamps/-", "value": seen},
    ]
    began = time.time()
    await client.patch(VIRTUAL_MACHINE_INSTANCES, name, namespace, patch)
    while True:
        try:
            found = await client.get(VIRTUAL_MACHINE_INSTANCES, name, namespace)
            if found["metadata"]["uid"] != before["metadata"]["uid"]:
                return name, began, time.time()
        except NotFound:
            pass
        await asyncio.sleep(0.004)


async def measure(cluster: Cluster, count: int, restarts: int) -> dict[str, Any]:
    """One run."""
    namespace = make_namespace(cluster)
    log = cluster.plan.root / "controller.log"
    async with client_of(cluster, user_agent="user") as user, client_of(cluster, user_agent="standin") as own:
        with controller(cluster.kubeconfig, log, namespace=namespace) as process:
            await led(user, namespace)
            await asyncio.sleep(2)
            nodes = StandIn(own, namespace)
            async with background(nodes.run()):
                since, began = time.time(), time.monotonic()
                await create(user, namespace, count)
                created = time.monotonic() - began
                await all_ready(user, namespace, count, 60 + count)
                seconds = time.monotonic() - began
                await asyncio.sleep(2)
                made, refused = calls(cluster, since)
                largest, twice = resident(process.pid), len(nodes.twice())
                again = []
                for number in range(restarts):
                    again.append(await restart(user, namespace, f"vm-{number}"))
                    await asyncio.sleep(1)
    parts = parts_of(cluster, again)
    return {
        "vms": count,
        "seconds to create": round(created, 1),
        "seconds to all Ready": round(seconds, 1),
        "calls a VM": round(made.total() / count, 2),
        "calls a VM by verb and resource": {words: round(n / count, 2) for words, n in made.most_common()},
        "refused a VM": {words: round(n / count, 2) for words, n in refused.most_common()},
        "made twice": twice,
        "resident MiB": round(largest, 1),
        "seconds from Failed to the next VMI, median": round(
            statistics.median(e - b for _, b, e in again), 3
        ),
        "parts": parts,
    }


def main() -> None:
    """Run from the command line."""
    parser = argparse.ArgumentParser(description="Load the controller and count what it costs.")
    parser.add_argument("--vms", type=int, default=100)
    parser.add_argument("--restarts", type=int, default=10)
    options = parser.parse_args()
    cluster = up(lambda line: print(line, file=sys.stderr), audit=True)
    try:
        found = asyncio.run(measure(cluster, options.vms, min(options.restarts, options.vms)))
    finally:
        cluster.down()
    print(json.dumps(found, indent=2))


if __name__ == "__main__":
    main()
