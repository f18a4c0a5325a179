"""A warning to a VM's owner before the memory that was requested beside the guest's is used up."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from kvnode.agent.parts import Recorder
from kvnode.agent.vmi import Vmi, uid_of
from kvnode.memory.report import MemoryReport
from kvnode.spec.config import ClusterConfig

REASON = "MemoryOverheadNearlyUsed"
NEARLY = 0.9
"""The part of the request from which on the owner is told."""
AGAIN = 0.8
"""Below this part it is over: what comes later is told anew."""
PAUSE = 3600.0
"""Seconds from one word to the next about a VM, however it swings."""
REMEMBERED = 2 * 86400.0
"""Seconds after which a VM that was not seen is forgotten."""
MANY = 1000
"""More VMs than a node holds: some of them must be gone."""
SHOWN = 5
"""Processes that are named, the largest first."""
MIB = 1 << 20
_GATE = "ReservedOverheadMemlock"


@dataclass(slots=True)
class _Known:
    seen: float
    is_told: bool = False
    when: float = float("-inf")


class Headroom:
    """Remembers who has been told."""

    def __init__(
        self, recorder: Recorder, config: Callable[[], ClusterConfig], clock: Callable[[], float]
    ) -> None:
        """`clock` gives seconds that only grow."""
        self._recorder = recorder
        self._config = config
        self._clock = clock
        self._known: dict[str, _Known] = {}

    def seen(self, vmi: Vmi, report: MemoryReport) -> None:
        """Take a new report, and tell the VM's owner with an Event when that is due."""
        if report.overhead_requested <= 0 or not report.processes:
            return
        now = self._clock()
        known = self._known.setdefault(uid_of(vmi), _Known(now))
        known.seen = now
        part = report.overhead_used / report.overhead_requested
        if part < AGAIN:
            known.is_told = False
        elif part >= NEARLY and not known.is_told and now - known.when >= PAUSE:
            known.is_told, known.when = True, now
            gate = self._config().gate(_GATE)
            self._recorder.event(vmi, "Warning", REASON, message(report, reserved_overhead=gate))
        if len(self._known) > MANY:
            self._forget(now)

    def _forget(self, now: float) -> None:
        kept: Mapping[str, _Known] = self._known
        self._known = {uid: one for uid, one in kept.items() if now - one.seen < REMEMBERED}


def message(report: MemoryReport, *, reserved_overhead: bool) -> str:
    """What is used by which process, and what can be raised.

    ``reserved_overhead``: whether the cluster lets VMs ask for an overhead of their own.
    """
    used, requested = report.overhead_used, report.overhead_requested
    left = (
        f"{_size(report.headroom)} are left"
        if report.headroom >= 0
        else f"{_size(-report.headroom)} more than that"
    )
    largest = sorted(report.processes, key=lambda one: -one.proportional)
    parts = [
        f"{one.role} {_size(one.proportional)} (of {_size(one.share)})"
        if one.share
        else f"{one.role} {_size(one.proportional)}"
        for one in largest[:SHOWN]
    ]
    if len(largest) > SHOWN:
        rest = sum(one.proportional for one in largest[SHOWN:])
        parts.append(f"{len(largest) - SHOWN} others {_size(rest)}")
    if report.page_tables:
        parts.append(f"page tables {_size(report.page_tables)} (of {_size(report.page_tables_share)})")
    raised = "spec.configuration.additionalGuestMemoryOverheadRatio of the KubeVirt object"
    if reserved_overhead:
        raised = f"the VM's spec.domain.memory.reservedOverhead.addedOverhead, or {raised}"
    return (
        f"beside the guest's memory {_size(used)} are used of {_size(requested)} requested, {left}: "
        f"{', '.join(parts)}. With no room left the node may end the VM; to give it more, raise {raised}, "
        "and start the VM anew"
    )


def _size(count: int) -> str:
    return f"{count / MIB:.0f} MiB"
