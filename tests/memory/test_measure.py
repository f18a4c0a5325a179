"""The report: samples beside the terms of the overhead."""

from __future__ import annotations

import json
from dataclasses import dataclass

from kvnode.memory.measure import Guest, Sample, build_report
from kvnode.memory.processes import VmProcess
from kvnode.memory.smaps import GuestMemory, StatusSizes
from kvnode.spec.overhead import memory_overhead, memory_overhead_terms

MIB = 1 << 20


@dataclass(frozen=True)
class Term:
    """A term as the overhead's module computes it."""

    name: str
    bytes: int


GUEST = Guest("default", "vm", "kvm", (256 * MIB,))
TERMS = [
    Term("page-tables", 2 * MIB),
    Term("launcher", 100 * MIB),
    Term("virtlogd", 25 * MIB),
    Term("qemu", 30 * MIB),
    Term("vcpus", 16 * MIB),
    Term("io-threads", 8 * MIB),
    Term("guaranteed", 100 * MIB),
]


def sample(
    role: str, pid: int, proportional: int, *, peak: int = 0, guest: GuestMemory | None = None
) -> Sample:
    """A sample whose resident size is 1 MiB over its proportional one."""
    status = StatusSizes(peak=peak * MIB, page_tables=MIB)
    return Sample(VmProcess(pid, role, role), (proportional + 1) * MIB, proportional * MIB, status, guest)


def test_guest_ram_is_split_off_and_each_process_has_its_share() -> None:
    ram = GuestMemory(200 * MIB, 200 * MIB, "memfd")
    report = build_report(
        GUEST,
        [
            sample("qemu", 30, 250, peak=260, guest=ram),
            sample("launcher", 20, 40, peak=44),
            sample("virtlogd", 10, 26, peak=28),
        ],
        TERMS,
    )
    assert [(line.role, line.proportional, line.share, line.verdict) for line in report.processes] == [
        ("launcher", 40 * MIB, 100 * MIB, "within"),
        ("virtlogd", 26 * MIB, 25 * MIB, "over"),
        ("qemu", 50 * MIB, 54 * MIB, "within"),
    ]
    qemu = report.processes[2]
    assert (qemu.resident, qemu.peak, qemu.terms) == (51 * MIB, 60 * MIB, ("qemu", "vcpus", "io-threads"))
    assert (report.guest_size, report.guest_resident, report.guest_backing) == (256 * MIB, 200 * MIB, "memfd")
    assert (report.page_tables, report.page_tables_share) == (3 * MIB, 2 * MIB)
    assert report.overhead_used == (40 + 26 + 50 + 3) * MIB
    assert report.overhead_requested == 281 * MIB
    assert report.headroom == report.overhead_requested - report.overhead_used
    assert report.verdict == "within"
    assert report.unassigned == (("guaranteed", 100 * MIB),)
    json.dumps(report.as_dict())


def test_huge_pages_are_in_no_peak_so_none_are_taken_out() -> None:
    ram = GuestMemory(200 * MIB, 200 * MIB, "hugepages")
    (line,) = build_report(GUEST, [sample("qemu", 1, 250, peak=60, guest=ram)], TERMS).processes
    assert line.peak == 60 * MIB


def test_a_peak_is_never_below_what_is_resident_now() -> None:
    ram = GuestMemory(200 * MIB, 200 * MIB, "anonymous")
    (line,) = build_report(GUEST, [sample("qemu", 1, 250, peak=210, guest=ram)], TERMS).processes
    assert line.peak == line.resident == 51 * MIB


def test_a_process_without_a_share_counts_in_the_total() -> None:
    report = build_report(GUEST, [sample("other", 1, 300)], TERMS)
    assert report.processes[0].verdict == "no share"
    assert report.verdict == "over"
    assert report.headroom < 0


def test_the_terms_are_those_of_the_overhead() -> None:
    vmi = {
        "spec": {
            "domain": {
                "memory": {"guest": "1Gi"},
                "resources": {"requests": {"memory": "1Gi"}},
                "devices": {"tpm": {}},
            }
        }
    }
    terms = memory_overhead_terms(vmi, "amd64")
    roles = ("launcher-monitor", "launcher", "virtlogd", "virtqemud", "qemu", "swtpm")
    report = build_report(GUEST, [sample(role, pid, 1) for pid, role in enumerate(roles)], terms)
    assert report.overhead_requested == memory_overhead(vmi, "amd64")
    assert report.unassigned == (), "every term stands for a process or for page tables"
    assert (
        sum(line.share for line in report.processes) + report.page_tables_share == report.overhead_requested
    )
