"""Many VMIs on one node: ``python -m bench.agent_load --vmis 200`` (root).

A control plane is brought up for it. `kvnode agent` runs in a process of its own, as it does in its pod; launchers are
stood in for (`tests.agent.podded`), kubelet's device manager too. Printed as a table: what was measured, the
limit, and whether it holds; exit code 1 when one does not. Processor time is the agent's own, so that a machine that
others use too changes it little.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import os
import shutil
import signal
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bench import agent_page
from bench.agent_node import NODE, AgentProcess, Node, launchers, name_of, until
from bench.report import PAGE, machine
from kvnode.kube.client import Client, PatchType
from kvnode.kube.resources import KUBEVIRTS, VIRTUAL_MACHINE_INSTANCES
from kvnode.kube.watch import watch
from tests.agent.kubelet import Kubelet
from tests.cluster.cluster import Cluster, up
from tests.kube.support import client_of

ROUNDS = 3
"""Of Syncs, one of each VMI."""
AHEAD = -10
"""By how much more urgent than usual what is measured is (nice(2)): others use the machine too."""
SETTLE = 75
"""Seconds until what a start brings is over: memory is measured more often at first."""
MIB = 1 << 20


@dataclass(frozen=True)
class Figure:
    """One row."""

    name: str
    value: float
    unit: str
    limit: float | None
    """The value must be below it; none: it is told, not judged."""

    @property
    def holds(self) -> bool:
        """Whether it is within its limit."""
        return self.limit is None or self.value < self.limit

    def cells(self) -> list[str]:
        """As text: what, how much, at most how much."""
        limit = "" if self.limit is None else f"{self.limit:g} {self.unit}"
        return [self.name, f"{self.value:.3g} {self.unit}", limit]


async def measure(cluster: Cluster, count: int, others: int, rest: float) -> list[Figure]:
    """All figures."""
    folder = Path(tempfile.mkdtemp(prefix="kv"))
    kubelet = Kubelet(folder / "d")
    async with client_of(cluster) as client:
        await use_emulation(client)
        node = Node(cluster, client, folder, count)
        await kubelet.start()
        try:
            await node.fill()
            with launchers(folder):
                say("launchers start")
                await until(lambda: _sockets(folder, count), 120)
                return await _measure(node, others, rest)
        finally:
            node.agent.stop()
            await kubelet.stop()
            shutil.rmtree(folder, ignore_errors=True)


async def _sockets(folder: Path, count: int) -> bool:
    return len(list((folder / "p").glob("*/volumes/kubernetes.io~empty-dir/sockets/launcher-sock"))) == count


async def _measure(node: Node, others: int, rest: float) -> list[Figure]:
    agent = node.agent
    figures: list[Figure] = []

    def add(name: str, value: float, unit: str, limit: float | None = None) -> None:
        figures.append(Figure(name, value, unit, limit))
        say(" | ".join(figures[-1].cells()))

    began = time.monotonic()
    agent.start()
    await until(node.all_run, 240, 0.5)
    add(f"{node.count} VMIs from Scheduled to Running", time.monotonic() - began, "s")
    await asyncio.sleep(SETTLE)
    add("processor time at rest", await share_of_a_core(agent, rest), "% of a core", 1.0)
    rounds = [await delays(node, node.count) for _ in range(ROUNDS)]
    for percent, limit in ((50, None), (99, 50.0)):
        all_of_them = [one for times in rounds for one in times]
        add(
            f"watch event to Sync, p{percent} of {len(all_of_them)}",
            nearest(all_of_them, percent),
            "ms",
            limit,
        )
    add("resident", agent.memory(), "MiB", 120.0)
    for number, how in ((signal.SIGTERM, "restart"), (signal.SIGKILL, "restart after a kill")):
        seconds, writes = await restart(node, number)
        add(f"{how}, until all are looked after", seconds, "s", 5.0)
        add(f"{how}, statuses written", writes, "", 1)
    await asyncio.sleep(SETTLE)
    before = agent.memory()
    used, then = agent.cpu(), time.monotonic()
    await node.add_others(others)
    share = 100 * (agent.cpu() - used) / (time.monotonic() - then)
    add(f"processor time while {others} VMIs of others are made", share, "% of a core")
    share = await share_of_a_core(agent, rest)
    add(f"processor time at rest beside {others} VMIs of others", share, "% of a core", 1.0)
    add("resident, growth meanwhile", agent.memory() - before, "MiB", 2.0)
    await agent.get("/metrics")
    used, then = agent.cpu(), time.monotonic()
    status, text = await agent.get("/metrics")
    add("a scrape of the metrics", time.monotonic() - then, "s", 10.0 if status == 200 else 0.0)
    add("a scrape, processor time", agent.cpu() - used, "s")
    add("a scrape, size", len(text) / MIB, "MiB")
    add("resident at its largest", agent.memory("VmHWM"), "MiB", 120.0)
    return figures


async def share_of_a_core(agent: AgentProcess, seconds: float) -> float:
    """Percent of a core that it takes while nothing happens."""
    before, then = agent.cpu(), time.monotonic()
    await asyncio.sleep(seconds)
    return 100 * (agent.cpu() - before) / (time.monotonic() - then)


async def delays(node: Node, count: int) -> list[float]:
    """Milliseconds from a second watcher's sight of a change to the Sync that it brings, one change at a time."""
    seen: dict[tuple[str, str], int] = {}
    version = (await node.client.get(VIRTUAL_MACHINE_INSTANCES, "vm-0", node.namespace))["metadata"][
        "resourceVersion"
    ]

    async def look() -> None:
        async for event in watch(
            node.client,
            VIRTUAL_MACHINE_INSTANCES,
            version,
            label_selector=f"kubevirt.io/nodeName={NODE}",
            seconds=900,
        ):
            note = (event.object["metadata"].get("annotations") or {}).get("bench")
            if note:
                seen.setdefault((name_of(event.object), note), time.monotonic_ns())

    looking = asyncio.ensure_future(look())
    await asyncio.sleep(0.5)
    start = len(node.syncs())
    asked: list[tuple[str, str, int]] = []
    for number in range(count):
        name, note = f"vm-{number % node.count}", f"{version}-{number}"
        patch = {"metadata": {"annotations": {"bench": note}}}
        asked.append((name, note, time.monotonic_ns()))
        await node.client.patch(VIRTUAL_MACHINE_INSTANCES, name, node.namespace, patch, PatchType.MERGE)
        await asyncio.sleep(0.1)
    await asyncio.sleep(1)
    looking.cancel()
    later = node.syncs()[start:]
    found = []
    for name, note, sent in asked:
        # Counted from before the change was asked for, as the second watcher may see it after the Sync has come.
        after = [when for one, when in later if one == name and when > sent]
        found.append((min(after) - seen[name, note]) / 1e6)
    return found


def nearest(values: list[float], percent: int) -> float:
    """A percentile."""
    return sorted(values)[min(len(values) * percent // 100, len(values) - 1)]


async def restart(node: Node, number: signal.Signals) -> tuple[float, int]:
    """Seconds from the start of a new agent until it is ready and each launcher had a Sync, and VMIs it wrote."""
    before = {name_of(one): one["metadata"]["resourceVersion"] for one in await node.instances()}
    node.agent.stop(number)
    start = len(node.syncs())
    then = time.monotonic()
    node.agent.start()

    async def looked_after() -> bool:
        return len({name for name, _ in node.syncs()[start:]}) == node.count

    await until(looked_after, 60)
    last = max(when for _, when in node.syncs()[start:]) / 1e9
    await until(lambda: _ready(node.agent), 60)
    await asyncio.sleep(3)
    after = {name_of(one): one["metadata"]["resourceVersion"] for one in await node.instances()}
    return last - then, sum(before[name] != version for name, version in after.items())


async def _ready(agent: AgentProcess) -> bool:
    return (await agent.get("/readyz"))[0] == 200


async def use_emulation(client: Client) -> None:
    """Let the cluster's nodes do without KVM."""
    settings = {"developerConfiguration": {"useEmulation": True, "featureGates": ["ImageVolume"]}}
    kubevirt: dict[str, Any] = {
        "apiVersion": "kubevirt.io/v1",
        "kind": "KubeVirt",
        "metadata": {"name": "kubevirt", "namespace": "default"},
        "spec": {"configuration": settings},
    }
    await client.create(KUBEVIRTS, kubevirt)


def say(line: str) -> None:
    """Tell whoever waits."""
    print(line, file=sys.stderr, flush=True)


def main() -> int:
    """Run from the command line; the answer is its exit code."""
    parser = argparse.ArgumentParser(prog="python -m bench.agent_load", description=__doc__)
    parser.add_argument("--vmis", type=int, default=200)
    parser.add_argument("--others", type=int, default=2000, help="VMIs of another node (2000)")
    parser.add_argument("--rest", type=float, default=120.0, help="seconds at rest (120)")
    parser.add_argument("--write", action="store_true", help="put the table into docs/performance.md")
    options = parser.parse_args()
    cluster = up(say)
    with contextlib.suppress(PermissionError):  # the agent and all that it meets run ahead of other programs
        os.nice(AHEAD)
    try:
        figures = asyncio.run(measure(cluster, options.vmis, options.others, options.rest))
    finally:
        cluster.down()
    load = os.getloadavg()[2]
    rows = [one.cells() for one in figures]
    widths = [max(len(row[column]) for row in rows) for column in range(3)]
    for figure, row in zip(figures, rows, strict=True):
        line = "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True))
        print(line + ("" if figure.holds else "  TOO MUCH"))
    if options.write:
        text = agent_page.section(options.vmis, rows, machine(), load)
        PAGE.write_text(agent_page.with_section(PAGE.read_text(), text))
    return 0 if all(figure.holds for figure in figures) else 1


if __name__ == "__main__":
    sys.exit(main())
