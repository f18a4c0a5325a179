"""Many VMs at once on a real API server: ``python -m bench.controller_load`` (``make bench-controller``).

For each run a control plane is brought up with an audit log; `kvnode controller` runs in a process of its own, and so
does `kvnode webhook` in the runs with webhooks. Scheduler, kubelet and node agent are played by a stand-in, which makes
every pod and guest run at once (`tests/controller/standin.py`). Printed as a table, or as JSON with ``--json``: seconds
from the first creation until all VMs are Ready, calls a VM by verb and resource, those refused, resident size, how far
the VMs' status trailed, and where the time of a restart goes.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import statistics
import sys
import time
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from bench import controller_page
from bench.controller_audit import calls, parts_of
from bench.controller_lag import Watcher
from bench.controller_webhooks import CONTROLLER, STANDIN, account, webhooks
from bench.report import PAGE
from bench.report import machine as machine_told
from kvnode.kube.client import Client
from kvnode.kube.config import from_kubeconfig
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
TOLD_EVERY = 5.0
"""Seconds between words of how far it is."""
REST = 1.0
"""Seconds between restarts."""


@dataclass(slots=True)
class Run:
    """One run's figures."""

    vms: int
    webhooks: bool
    to_create: float = 0.0
    """Seconds."""
    to_ready: float = 0.0
    """Seconds, from the first creation on."""
    calls: dict[str, float] = field(default_factory=dict)
    """A VM, by verb and resource."""
    refused: dict[str, float] = field(default_factory=dict)
    twice: int = 0
    """VMIs that were made more than once, or had more than one pod."""
    resident: float = 0.0
    """MiB, at most."""
    lag: float = 0.0
    """Seconds for which a VM told something else than its VMI, at most."""
    restart: list[float] = field(default_factory=list)
    """Seconds from Failed to the next VMI."""
    parts: dict[str, dict[str, float]] = field(default_factory=dict)
    """Of a restart, in milliseconds: `bench.controller_audit.parts_of`."""

    @property
    def calls_a_vm(self) -> float:
        """All of them."""
        return round(sum(self.calls.values()), 2)


def say(line: str) -> None:
    """Show how far it is."""
    print(line, file=sys.stderr, flush=True)


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
            return round(int(line.split()[1]) / 1024, 1)
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


async def all_ready(watcher: Watcher, count: int, limit: float) -> None:
    """Wait until so many VMs are Ready and say Running.

    Raises:
        TimeoutError: they are not after so many seconds.
    """
    began = told = time.monotonic()
    async with asyncio.timeout(limit):
        while watcher.ready < count:
            await asyncio.sleep(0.1)
            if time.monotonic() - told >= TOLD_EVERY:
                told = time.monotonic()
                say(f"  {told - began:.0f} s: {watcher.ready} of {count} are Ready")


async def restart(client: Client, watcher: Watcher, key: str) -> tuple[str, float, float]:
    """Let a guest crash and wait for its next VMI; the answer is the VM's name, and both times by the clock.

    `client` must be one whose word on a VMI's status the webhooks take.

    Raises:
        TimeoutError: there is no next VMI.
    """
    namespace, _, name = key.partition("/")
    before = watcher.made[key]
    seen = {"phase": "Failed", "phaseTransitionTimestamp": timestamp(utc_now())}
    patch: list[Object] = [
        {"op": "replace", "path": "/status/phase", "value": "Failed"},
        {"op": "add", "path": "/status/phaseTransitionTimestamps/-", "value": seen},
    ]
    began = time.time()
    await client.patch(VIRTUAL_MACHINE_INSTANCES, name, namespace, patch)
    async with asyncio.timeout(60):
        while watcher.made[key][0] == before[0]:
            await asyncio.sleep(0.004)
    return name, began, watcher.made[key][1]


async def measure(cluster: Cluster, run: Run, restarts: int) -> None:
    """Do one run."""
    namespace, count = make_namespace(cluster), run.vms
    theirs, own = (account(cluster, namespace, name) for name in (CONTROLLER, STANDIN))
    log = cluster.plan.root / "controller.log"
    async with AsyncExitStack() as held:
        user = await held.enter_async_context(client_of(cluster, user_agent="user"))
        standin = await held.enter_async_context(Client(from_kubeconfig(own), user_agent="standin"))
        if run.webhooks:
            await held.enter_async_context(webhooks(cluster, namespace, user))
        process = held.enter_context(controller(theirs, log, namespace=namespace))
        await led(user, namespace)
        await asyncio.sleep(2)
        nodes, watcher = StandIn(standin, namespace), Watcher(user, namespace)
        await held.enter_async_context(background(nodes.run(), watcher.run()))
        since, began = time.time(), time.monotonic()
        await create(user, namespace, count)
        run.to_create = round(time.monotonic() - began, 1)
        await all_ready(watcher, count, 60 + count)
        run.to_ready = round(time.monotonic() - began, 1)
        await asyncio.sleep(3)
        made, refused = calls(cluster, since)
        run.calls = {words: round(n / count, 2) for words, n in made.most_common()}
        run.refused = {words: round(n / count, 2) for words, n in refused.most_common()}
        run.resident, run.twice, run.lag = (
            resident(process.pid),
            len(nodes.twice()),
            round(watcher.longest, 2),
        )
        say(f"  all Ready after {run.to_ready} s; {restarts} restarts follow")
        again = []
        for number in range(restarts):
            again.append(await restart(standin, watcher, f"{namespace}/vm-{number}"))
            await asyncio.sleep(REST)
        run.restart = [round(ended - began, 3) for _, began, ended in again]
        run.parts = parts_of(cluster, again) if again else {}


def table(runs: list[Run]) -> str:
    """The runs side by side, in Markdown."""
    rows: list[tuple[str, list[str]]] = [
        ("VMs", [str(run.vms) for run in runs]),
        ("webhooks", ["on" if run.webhooks else "" for run in runs]),
        ("all created, s", [str(run.to_create) for run in runs]),
        ("all Ready, s", [str(run.to_ready) for run in runs]),
        ("calls a VM", [str(run.calls_a_vm) for run in runs]),
    ]
    by_kind = dict.fromkeys(words for run in runs for words in run.calls)
    rows += [(f"· {words}", [f"{run.calls.get(words, 0):.2f}" for run in runs]) for words in by_kind]
    rows += [
        ("of them refused", [str(round(sum(run.refused.values()), 2)) for run in runs]),
        ("made twice", [str(run.twice) for run in runs]),
        ("resident at most, MiB", [str(run.resident) for run in runs]),
        ("VM status trails at most, s", [str(run.lag) for run in runs]),
        ("Failed to the next VMI, s", [_spread(run.restart) for run in runs]),
    ]
    for words in dict.fromkeys(words for run in runs for words in run.parts):
        steps = [run.parts.get(words) for run in runs]
        told = [f"{one['before']:.0f} + {one['call']:.0f} → {one['at']:.0f}" if one else "" for one in steps]
        rows.append((f"· {words}, ms", told))
    head, *rest = (f"| {title} | {' | '.join(cells)} |" for title, cells in rows)
    return "\n".join([head, "| --- |" + " --: |" * len(runs), *rest])


def _spread(values: list[float]) -> str:
    return f"{statistics.median(values):.3f} ({min(values):.3f} to {max(values):.3f})" if values else ""


def main() -> None:
    """Run from the command line."""
    parser = argparse.ArgumentParser(description="Load the controller and count what it costs.")
    parser.add_argument("--vms", type=int, nargs="*", default=[100, 300, 1000], help="runs without webhooks")
    parser.add_argument("--with-webhooks", type=int, nargs="*", default=[100, 1000], help="runs with them")
    parser.add_argument("--restarts", type=int, default=20, help="guests that crash after each run")
    parser.add_argument("--json", type=Path, help="write the figures there, too")
    parser.add_argument("--write", action="store_true", help="put the table into docs/performance.md")
    options = parser.parse_args()
    runs = [Run(count, False) for count in options.vms] + [
        Run(count, True) for count in options.with_webhooks
    ]
    loads: list[float] = []
    for run in runs:
        say(f"{run.vms} VMs{', with webhooks' if run.webhooks else ''}")
        cluster = up(lambda line: say(f"  {line}"), audit=True)
        try:
            loads.append(os.getloadavg()[0])
            asyncio.run(measure(cluster, run, min(options.restarts, run.vms)))
            loads.append(os.getloadavg()[0])
        finally:
            cluster.down()
    if options.json:
        options.json.write_text(json.dumps([_told(run) for run in runs], indent=2) + "\n")
    text, load = table(runs), statistics.mean(loads)
    print(text)
    if options.write:
        section = controller_page.section(text, machine_told(), load)
        PAGE.write_text(controller_page.with_section(PAGE.read_text(), section))


def _told(run: Run) -> dict[str, Any]:
    return {name: getattr(run, name) for name in Run.__slots__}


if __name__ == "__main__":
    main()
