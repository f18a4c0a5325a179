"""When the VMs' memory is measured, and whose."""

from __future__ import annotations

import os
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from kvnode.agent.domain import Domain
from kvnode.agent.domains import DomainStore
from kvnode.agent.ghost import Ghost
from kvnode.agent.observe import memorywatch
from kvnode.agent.observe.memorywatch import AT_ONCE, FIRST, GROWTH, LONGEST, LOOKED_AT, SHOWN, MemoryWatch
from kvnode.agent.processes import Household
from kvnode.api.errors import FieldError
from kvnode.memory.processes import by_namespace
from kvnode.memory.report import MemoryReport, ProcessMemory
from tests.agent.build import vmi
from tests.agent.observe.build import process, report
from tests.kube.loops import real_time

MONITOR = 100


class Node:
    """A /proc of a node with launchers, and a clock that the test turns."""

    def __init__(self, proc: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.proc = proc
        self.now = 0.0
        self.used = 10
        self.measured: list[tuple[int, tuple[int, ...]]] = []
        self.told: list[str] = []
        self.vmis: dict[str, Any] = {}
        self.connections: list[Any] = []
        self.took = 0.0
        self.processes: tuple[ProcessMemory, ...] = ()
        self.failure: Exception | None = None
        self.process("self", "pid:[1]")
        queue: Any = SimpleNamespace(add=lambda _key: None, forget=lambda _key: None)
        self.watch = MemoryWatch(
            lambda: self.connections,
            SimpleNamespace(get=self.vmis.get),
            DomainStore(queue),
            terms=self.terms,
            told=lambda vmi, _report: self.told.append(vmi["metadata"]["uid"]),
            clock=lambda: self.now,
            proc=proc,
        )
        monkeypatch.setattr(memorywatch, "measure", self.measure)
        monkeypatch.setattr(memorywatch, "perf_counter", self.seconds)

    def seconds(self) -> float:
        """A stopwatch by which each measurement takes as long as is wanted."""
        self.now_of_stopwatch = getattr(self, "now_of_stopwatch", 0.0) + self.took
        return self.now_of_stopwatch

    def terms(self, _vmi: Any) -> tuple[()]:
        if self.failure:
            raise self.failure
        return ()

    def process(self, pid: str, namespace: str) -> None:
        folder = self.proc / pid / "ns"
        folder.mkdir(parents=True)
        (folder / "pid").symlink_to(namespace)

    def launcher(self, number: int, namespace: str) -> None:
        """A VM whose monitor and launcher have these PIDs: 100 and 101, 200 and 201 ..."""
        for pid in (MONITOR * number, MONITOR * number + 1):
            self.process(str(pid), namespace)
        ghost = Ghost("default", f"vm-{number}", f"uid-{number}", "/s")
        household = Household(MONITOR * number, 0)
        self.connections.append(SimpleNamespace(ghost=ghost, household=household))
        self.vmis[ghost.key] = vmi(uid=ghost.uid, name=ghost.name)

    def measure(self, first: int, _guest: Any, _terms: Any, _proc: Path, among: Any) -> MemoryReport:
        self.measured.append((first, tuple(sorted(among))))
        return report(*self.processes or (process("qemu", 7, self.used - 1, 0),), requested=100)

    async def turn(self, later: float = 0.0) -> int:
        """A turn so much later; the answer is how many were measured."""
        self.now += later
        before = len(self.measured)
        await self.watch.turn()
        return len(self.measured) - before


@pytest.fixture
def node(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Node:
    return Node(tmp_path, monkeypatch)


@real_time
async def test_each_vm_by_its_own_processes(node: Node) -> None:
    node.launcher(1, "pid:[11]")
    node.launcher(2, "pid:[12]")
    assert await node.turn() == 2
    assert node.measured == [(100, (100, 101)), (200, (200, 201))]
    assert node.told == ["uid-1", "uid-2"]
    last = node.watch.last("uid-1")
    assert last is not None
    assert last.when == 0.0


@real_time
async def test_ever_more_seldom_where_nothing_presses(node: Node) -> None:
    node.launcher(1, "pid:[11]")
    await node.turn()
    pause = FIRST * GROWTH
    for _ in range(8):
        assert await node.turn(pause - 1) == 0
        assert await node.turn(1) == 1
        pause = min(pause * GROWTH, LONGEST)
    assert pause == LONGEST


@real_time
async def test_often_where_little_is_left(node: Node) -> None:
    node.launcher(1, "pid:[11]")
    await node.turn()
    await node.turn(FIRST * GROWTH)
    node.used = 80
    assert await node.turn(LONGEST) == 1
    assert await node.turn(FIRST) == 1


@real_time
async def test_one_that_takes_long_is_spared(node: Node) -> None:
    node.launcher(1, "pid:[11]")
    node.took = 1.0
    await node.turn()
    assert await node.turn(999) == 0
    assert await node.turn(1) == 1


@real_time
async def test_nothing_is_kept_of_a_launcher_that_is_gone(node: Node) -> None:
    node.launcher(1, "pid:[11]")
    await node.turn()
    node.connections.clear()
    assert await node.turn() == 0
    assert node.watch.last("uid-1") is None


@real_time
async def test_not_all_at_once_and_none_is_left_out(node: Node) -> None:
    for number in range(1, AT_ONCE + 4):
        node.launcher(number, f"pid:[{number + 10}]")
    assert [await node.turn(), await node.turn()] == [AT_ONCE, 3]
    assert len(set(node.told)) == AT_ONCE + 3


@real_time
async def test_one_among_the_node_s_own_processes_is_no_pod(node: Node) -> None:
    node.launcher(1, "pid:[1]")
    assert await node.turn() == 0
    assert node.watch.last("uid-1") is None


@real_time
async def test_trouble_with_one_is_not_the_others(node: Node) -> None:
    node.launcher(1, "pid:[11]")
    (node.proc / "100/ns/pid").unlink()
    node.launcher(2, "pid:[12]")
    assert await node.turn() == 1
    assert node.told == ["uid-2"]
    for node.failure in (
        FieldError("spec.domain.memory", "must be a mapping"),
        TypeError("whatever a VMI brings along"),
    ):
        assert await node.turn(3600) == 0
        assert node.watch.last("uid-2") is None
    node.failure = None
    assert await node.turn(3600) == 1


@real_time
async def test_of_a_vm_of_many_processes_the_largest_are_shown(node: Node) -> None:
    node.launcher(1, "pid:[11]")
    for pid in range(1000, 1000 + LOOKED_AT):
        node.process(str(pid), "pid:[11]")
    node.processes = tuple(process("other", pid, pid, 0) for pid in range(SHOWN + 5))
    await node.turn()
    assert len(node.measured[0][1]) == LOOKED_AT
    last = node.watch.last("uid-1")
    assert last is not None
    assert [one.pid for one in last.report.processes] == list(range(5, SHOWN + 5))


@real_time
async def test_processes_of_this_machine_by_their_namespace() -> None:
    found = by_namespace()
    assert os.getpid() in found[str(Path("/proc/self/ns/pid").readlink())]


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        ({"Memory": {"Value": 64, "Unit": "MiB"}}, (64 << 20,)),
        ({"Memory": {"Value": 64, "Unit": ""}}, (64 << 10,)),
        (
            {
                "Memory": {"Value": 3, "Unit": "GiB"},
                "CPU": {"NUMA": {"Cells": [{"Memory": "1", "Unit": "GiB"}, {"Memory": "2", "Unit": "GiB"}]}},
            },
            (1 << 30, 2 << 30),
        ),
        ({"Memory": {"Value": "x", "Unit": "GiB"}, "CPU": {"NUMA": {"Cells": [3]}}}, ()),
        ({"Memory": {"Value": 10**30, "Unit": "GiB"}, "CPU": {"NUMA": 1}}, ()),
        ({}, ()),
    ],
)
def test_blocks_of_memory_out_of_what_a_launcher_says(
    spec: dict[str, Any], expected: tuple[int, ...]
) -> None:
    assert memorywatch._ram(Domain({"Spec": spec})) == expected
    assert memorywatch._ram(None) == ()
