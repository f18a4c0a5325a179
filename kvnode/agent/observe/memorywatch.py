"""What the processes of this node's VMs use, measured again and again, and seldom where nothing presses.

A look at a large QEMU's mappings takes the kernel a while (proc(5), smaps), so nobody who asks makes one: metrics, page
and warnings have the last one made.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from time import perf_counter

from kvnode.agent.domain import Domain
from kvnode.agent.domains import DomainStore
from kvnode.agent.errors import FAILURES
from kvnode.agent.launchers import Connection
from kvnode.agent.parts import Vmis
from kvnode.agent.status.fields import libvirt_quantity
from kvnode.agent.vmi import Vmi
from kvnode.api.quantity import Quantity
from kvnode.memory.measure import Guest, OverheadTerm, measure
from kvnode.memory.processes import by_namespace
from kvnode.memory.report import MemoryReport

logger = logging.getLogger(__name__)

TURN = 5.0
"""Seconds between two looks for whom it is time."""
AT_ONCE = 20
"""VMs that are measured in a turn at most."""
FIRST = 15.0
"""Seconds from one measurement to the next of a VM that is short of room."""
GROWTH, LONGEST = 4.0, 300.0
"""So much more seldom each time where it is not, up to so many seconds."""
PRESSED = 0.75
"""The part of the request from which on a VM is measured often."""
SHARE = 1000
"""A measurement that took long comes again after this many times as long at the earliest."""
LOOKED_AT, SHOWN = 500, 40
"""Processes of a VM that are looked at, and of these the largest that are shown: a guest's owner may start many."""
_DIGITS = 20
"""A number of so many digits is no size."""


@dataclass(frozen=True, slots=True)
class Measured:
    """A report and the loop's time when it was made."""

    report: MemoryReport
    when: float


@dataclass(slots=True)
class _Plan:
    due: float
    pause: float = FIRST
    last: Measured | None = None


Told = Callable[[Vmi, MemoryReport], None]
"""Who hears of each new report."""
Terms = Callable[[Vmi], Iterable[OverheadTerm]]
"""What is requested beside the guest's memory, term by term; raises FieldError."""


class MemoryWatch:
    """Measures the VMs whose launchers are connected, each on a plan of its own."""

    def __init__(
        self,
        launchers: Callable[[], Iterable[Connection]],
        vmis: Vmis,
        domains: DomainStore,
        *,
        terms: Terms,
        told: Told,
        clock: Callable[[], float],
        proc: Path = Path("/proc"),
    ) -> None:
        """`clock` gives seconds that only grow."""
        self._launchers = launchers
        self._vmis = vmis
        self._domains = domains
        self._terms = terms
        self._told = told
        self._clock = clock
        self._proc = proc
        self._plans: dict[str, _Plan] = {}

    def last(self, uid: str) -> Measured | None:
        """The last report about a VMI; None before the first."""
        plan = self._plans.get(uid)
        return plan.last if plan else None

    async def run(self) -> None:
        """Measure until cancelled."""
        while True:
            await asyncio.sleep(TURN)
            await self.turn()

    async def turn(self) -> None:
        """Measure those whose time has come, not too many at once, those first that have waited for longest."""
        now = self._clock()
        connections = {one.ghost.uid: one for one in self._launchers()}
        self._plans = {uid: self._plans.get(uid) or _Plan(now) for uid in connections}
        waiting = sorted((plan.due, uid) for uid, plan in self._plans.items() if plan.due <= now)
        due = [connections[uid] for _, uid in waiting[:AT_ONCE]]
        if not due:
            return
        namespaces = await asyncio.to_thread(by_namespace, self._proc)
        for connection in due:
            plan = self._plans[connection.ghost.uid]
            began = perf_counter()
            report = await self._measure(connection, namespaces)
            self._plan(plan, report, perf_counter() - began)

    def _plan(self, plan: _Plan, report: MemoryReport | None, took: float) -> None:
        if report is None:
            plan.last, plan.pause = None, FIRST
        else:
            plan.last = Measured(report, self._clock())
            pressed = report.overhead_used >= PRESSED * report.overhead_requested
            plan.pause = FIRST if pressed else min(plan.pause * GROWTH, LONGEST)
        plan.due = self._clock() + max(plan.pause, took * SHARE)

    async def _measure(
        self, connection: Connection, namespaces: Mapping[str, list[int]]
    ) -> MemoryReport | None:
        ghost = connection.ghost
        vmi = self._vmis.get(ghost.key)
        if vmi is None:
            return None
        domain = self._domains.get(ghost.key)
        guest = Guest(ghost.namespace, ghost.name, str((domain and domain.spec("Type")) or ""), _ram(domain))
        try:
            report = await asyncio.to_thread(self._report, connection, guest, vmi, namespaces)
            if report is not None:
                self._told(vmi, report)
        except (*FAILURES, ValueError) as error:
            logger.debug("%s: its memory is not measured: %s", ghost.key, error)
            return None
        except Exception:  # a VMI may have anything in it, and must not end the agent
            logger.exception("%s: its memory cannot be measured", ghost.key)
            return None
        return report

    def _report(
        self, connection: Connection, guest: Guest, vmi: Vmi, namespaces: Mapping[str, list[int]]
    ) -> MemoryReport | None:
        first = connection.household.monitor
        own, theirs = (str((self._proc / name / "ns/pid").readlink()) for name in ("self", str(first)))
        if own == theirs:  # no pod: whose process is whose cannot be told
            return None
        found = measure(first, guest, self._terms(vmi), self._proc, namespaces.get(theirs, [])[:LOOKED_AT])
        largest = sorted(found.processes, key=lambda one: -one.proportional)[:SHOWN]
        return replace(found, processes=tuple(one for one in found.processes if one in largest))


def _ram(domain: Domain | None) -> tuple[int, ...]:
    """Sizes in bytes of the guest's blocks of memory, as its domain has them; nothing when they are not known."""
    if domain is None:
        return ()
    cells = domain.spec("CPU", "NUMA", "Cells")
    found = [one for one in cells if isinstance(one, Mapping)] if isinstance(cells, list) else []
    blocks = [_bytes(one.get("Memory"), one.get("Unit")) for one in found]
    blocks = blocks or [_bytes(domain.spec("Memory", "Value"), domain.spec("Memory", "Unit"))]
    return tuple(size for size in blocks if size)


def _bytes(value: object, unit: object) -> int:
    """A size of libvirt's; 0 for what is none."""
    text = str(value)
    number = int(text) if text.isascii() and text.isdigit() and len(text) < _DIGITS else 0
    size = libvirt_quantity(number, str(unit or "KiB"))
    return Quantity(size).value if size else 0
