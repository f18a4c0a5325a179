"""Measure the processes of a VM against the terms of its memory overhead."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from kvnode.memory.processes import ROLES, VmProcess, in_namespaces_of
from kvnode.memory.report import MemoryReport, ProcessMemory, Verdict
from kvnode.memory.smaps import GuestMemory, Mapping, StatusSizes, guest_memory, parse_smaps, parse_status


class OverheadTerm(Protocol):
    """A term of the overhead, as ``kvnode.spec.overhead`` computes it."""

    @property
    def name(self) -> str:
        """Stable name."""

    @property
    def bytes(self) -> int:
        """How much."""


@dataclass(frozen=True)
class Guest:
    """The VM that is measured."""

    namespace: str
    name: str
    domain_type: str
    ram: tuple[int, ...]
    """Sizes in bytes of the guest's RAM blocks."""


@dataclass(frozen=True)
class Sample:
    """What one process was found to use."""

    process: VmProcess
    resident: int
    proportional: int
    status: StatusSizes
    guest: GuestMemory | None = None


# What a process's share is made of. Terms that are in no row here and not PAGE_TABLES stand for no process.
_TERMS = {
    "launcher-monitor": ("launcher-monitor",),
    "launcher": ("launcher",),
    "virtlogd": ("virtlogd",),
    "virtqemud": ("virtqemud",),
    "swtpm": ("tpm",),
    "passt": ("passt",),
    "qemu": (
        "qemu",
        "vcpus",
        "io-threads",
        "video",
        "firmware",
        "vfio",
        "memory-encryption",
        "downward-metrics",
    ),
}
PAGE_TABLES = "page-tables"


def measure(
    first_process: int,
    guest: Guest,
    terms: Iterable[OverheadTerm],
    proc: Path = Path("/proc"),
    among: Iterable[int] | None = None,
) -> MemoryReport:
    """Measure all processes in the PID namespace of ``first_process``; those that end meanwhile
    are left out. ``among``: the PIDs that may be in it (`processes.by_namespace`), where they are known.
    """
    samples = [
        sample
        for process in in_namespaces_of(first_process, proc, among)
        if (sample := _sample(process, guest, proc))
    ]
    return build_report(guest, samples, list(terms))


def _sample(process: VmProcess, guest: Guest, proc: Path) -> Sample | None:
    directory = proc / str(process.pid)
    try:
        status = parse_status((directory / "status").read_text(encoding="utf-8", errors="replace"))
        if process.role != "qemu":
            mappings = list(
                parse_smaps((directory / "smaps_rollup").read_text(encoding="utf-8", errors="replace"))
            )
            return Sample(process, _resident(mappings), _proportional(mappings), status)
        mappings = list(parse_smaps((directory / "smaps").read_text(encoding="utf-8", errors="replace")))
    except (OSError, ValueError):
        return None
    return Sample(
        process, _resident(mappings), _proportional(mappings), status, guest_memory(mappings, guest.ram)
    )


def _resident(mappings: Sequence[Mapping]) -> int:
    return sum(m.resident for m in mappings)


def _proportional(mappings: Sequence[Mapping]) -> int:
    return sum(m.proportional for m in mappings)


def build_report(guest: Guest, samples: Sequence[Sample], terms: Sequence[OverheadTerm]) -> MemoryReport:
    """Put samples beside the terms of the overhead."""
    budget = {term.name: term.bytes for term in terms}
    processes = tuple(_line(sample, budget) for sample in sorted(samples, key=_order))
    rams = [sample.guest for sample in samples if sample.guest is not None]
    page_tables = sum(sample.status.page_tables for sample in samples)
    used = sum(line.proportional for line in processes) + page_tables
    requested = sum(term.bytes for term in terms)
    counted = {PAGE_TABLES, *(name for line in processes for name in line.terms)}
    return MemoryReport(
        namespace=guest.namespace,
        name=guest.name,
        domain_type=guest.domain_type,
        guest_size=sum(guest.ram),
        guest_resident=sum(ram.resident for ram in rams),
        guest_backing=rams[0].backing if rams else "",
        processes=processes,
        page_tables=page_tables,
        page_tables_share=budget.get(PAGE_TABLES, 0),
        overhead_used=used,
        overhead_requested=requested,
        headroom=requested - used,
        verdict="within" if used <= requested else "over",
        unassigned=tuple((term.name, term.bytes) for term in terms if term.name not in counted),
    )


def _order(sample: Sample) -> tuple[int, int]:
    return ROLES.index(sample.process.role), sample.process.pid


def _line(sample: Sample, budget: dict[str, int]) -> ProcessMemory:
    """Return a process's line; QEMU's is without the guest's RAM."""
    terms = tuple(name for name in _TERMS.get(sample.process.role, ()) if name in budget)
    share = sum(budget[name] for name in terms)
    resident, proportional, peak = sample.resident, sample.proportional, sample.status.peak
    if sample.guest is not None:
        resident -= sample.guest.resident
        proportional -= sample.guest.proportional
        in_peak = 0 if sample.guest.backing == "hugepages" else sample.guest.resident
        peak = max(peak - in_peak, resident)
    verdict: Verdict = "no share"
    if share > 0:
        verdict = "within" if proportional <= share else "over"
    return ProcessMemory(
        role=sample.process.role,
        pid=sample.process.pid,
        command=sample.process.command,
        resident=resident,
        proportional=proportional,
        peak=peak,
        share=share,
        terms=terms,
        verdict=verdict,
    )
