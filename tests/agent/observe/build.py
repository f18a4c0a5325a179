"""VMs to be shown."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

from kvnode.agent.observe.domainstats import samples
from kvnode.agent.observe.events import Event
from kvnode.agent.observe.memorywatch import Measured
from kvnode.agent.observe.metrics import Source, expose_agent, expose_vms
from kvnode.agent.observe.samples import Seen
from kvnode.kube.histogram import Histogram
from kvnode.memory.report import MemoryReport, ProcessMemory

MIB = 1 << 20
HOSTILE = '"><script>window.hit=1</script><img src=x onerror="window.hit=1">\\\n'


def process(role: str, pid: int, used: int, share: int, **about: Any) -> ProcessMemory:
    """A process; sizes in MiB. Its resident size is 10 MiB more than its proportional one."""
    verdict: Any = "no share" if not share else "over" if used > share else "within"
    sizes = ((used + 10) * MIB, used * MIB, (used + 20) * MIB, share * MIB)
    return replace(ProcessMemory(role, pid, f"{role}-program", *sizes, (role,), verdict), **about)


def report(*processes: ProcessMemory, name: str = "web", requested: int = 268) -> MemoryReport:
    """A report of these processes; 1 MiB of page tables."""
    found = processes or (process("launcher", 6, 60, 100), process("qemu", 7, 90, 78))
    used = sum(one.proportional for one in found) + MIB
    return MemoryReport(
        namespace="default",
        name=name,
        domain_type="kvm",
        guest_size=1024 * MIB,
        guest_resident=640 * MIB,
        guest_backing="memfd",
        processes=found,
        page_tables=MIB,
        page_tables_share=2 * MIB,
        overhead_used=used,
        overhead_requested=requested * MIB,
        headroom=requested * MIB - used,
        verdict="within" if used <= requested * MIB else "over",
        unassigned=(),
    )


STATS: dict[str, Any] = {
    "Cpu": {"TimeSet": True, "Time": 1_500_000_000, "UserSet": False, "User": 9},
    "Memory": {"RSSSet": True, "RSS": 2},
    "Vcpu": [{"StateSet": True, "State": 1, "TimeSet": True, "Time": 10**9, "WaitSet": True, "Wait": 0}],
    "Net": [
        {
            "NameSet": True,
            "Name": "tap0",
            "AliasSet": True,
            "Alias": "default",
            "RxBytesSet": True,
            "RxBytes": 5,
        }
    ],
    "Block": [{"NameSet": True, "Name": "vda", "Alias": "disk", "RdTimesSet": True, "RdTimes": 10**9}],
    "CPUMapSet": True,
    "CPUMap": [[True, False, True], [True]],
}
FILES = [{"diskName": "vda1", "mountPoint": "/", "fileSystemType": "ext4", "totalBytes": 9, "usedBytes": 3}]


def seen(name: str = "web", **about: Any) -> Seen:
    """A VM that runs."""
    one = Seen(
        f"default/{name}", "Running", "Running", samples(STATS, FILES), Measured(report(name=name), 0.0), 0.25
    )
    return replace(one, **about)


EVENTS = (
    Event("2026-11-29T10:12:00Z", "default/web", "Warning", "MemoryOverheadNearlyUsed", "160 of 268 MiB"),
    Event("2026-11-29T10:00:00Z", "default/web", "Normal", "Started", "the VM runs"),
)


class Queue:
    """A queue in which something is done."""

    name = "virt-handler-vm"
    adds = 9
    retries = 2

    def __init__(self) -> None:
        self.waited, self.worked = Histogram(), Histogram()
        for seconds in (0.5, 0.05, 20):
            self.worked.observe(seconds)

    def __len__(self) -> int:
        return 3

    def running(self) -> dict[str, float]:
        return {"a/b": 1.5, "a/c": 0.5}


def source(*, ready: bool = True, **about: object) -> Source:
    return Source("node01", lambda: ready, Queue(), **about)  # type: ignore[arg-type]


def exposed(vms: Iterable[Seen], about: Source) -> str:
    """All metrics as text."""
    return expose_vms(vms, about.node, expose_agent(about)).decode()
