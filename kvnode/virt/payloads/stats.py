"""Statistics of a domain (``pkg/virt-launcher/virtwrap/stats/types.go``).

Beside most values stands ``…Set``: whether libvirt gave it. Units are libvirt's: times in nanoseconds,
memory in KiB, the rest in bytes and counts.
"""

from __future__ import annotations

from kvnode.virt.domain_json.scalars import BOOL, BOOLS, FLOAT, INT64, TEXT, UINT64, Scalar
from kvnode.virt.domain_json.shape import Field, many, optional, struct, text, value


def _measured(*names: str, kind: Scalar = UINT64) -> tuple[Field, ...]:
    """For each name, whether it was measured, and the measure."""
    return tuple(f for name in names for f in (value(f"{name}Set", BOOL), value(name, kind)))


CPU = struct(*_measured("Time", "User", "System"))
MEMORY = struct(
    *_measured(
        "Unused",
        "Cached",
        "Available",
        "ActualBalloon",
        "RSS",
        "SwapIn",
        "SwapOut",
        "MajorFault",
        "MinorFault",
        "Usable",
        "Total",
    )
)
JOB = struct(*_measured("DataTotal", "DataProcessed", "MemoryBps", "DataRemaining", "MemDirtyRate"))
VCPU = struct(*_measured("State", kind=INT64), *_measured("Time", "Wait", "Delay"))
NET = struct(
    *_measured("Name", "Alias", kind=TEXT),
    *_measured("RxBytes", "RxPkts", "RxErrs", "RxDrop", "TxBytes", "TxPkts", "TxErrs", "TxDrop"),
)
BLOCK = struct(
    *_measured("Name", kind=TEXT),
    text("Alias"),
    *_measured("BackingIndex"),
    *_measured("Path", kind=TEXT),
    *_measured("RdReqs", "RdBytes", "RdTimes", "WrReqs", "WrBytes", "WrTimes", "FlReqs", "FlTimes"),
    *_measured("Errors", "Allocation", "Capacity", "Physical"),
)
DIRTY_RATE = struct(*_measured("CalcStatus", "CalcStartTime", "CalcPeriod", "MegabytesPerSecond", kind=INT64))
LOAD = struct(*_measured("Load1m", "Load5m", "Load15m", kind=FLOAT))

DOMAIN_STATS = struct(
    text("Name"),
    text("UUID"),
    optional("Cpu", "", CPU),
    optional("Memory", "", MEMORY),
    optional("MigrateDomainJobInfo", "", JOB),
    many("Vcpu", "", VCPU),
    many("Net", "", NET),
    many("Block", "", BLOCK),
    value("CPUMapSet", BOOL),
    many("CPUMap", "", BOOLS),
    optional("DirtyRate", "", DIRTY_RATE),
    optional("Load", "", LOAD),
)

#: What a client puts together from a GetVMStats answer; the guest agent's words stand as it gave them.
VM_STATS = struct(
    value("DomainStats", DOMAIN_STATS),
    optional("DirtyRateMbps", "", INT64),
    text("GuestAgentVersion"),
    text("GuestGetLoad"),
    text("GuestGetCpuStats"),
    text("GuestGetDiskStats"),
    text("GuestGetTime"),
    text("GuestGetVcpus"),
    text("GuestGetMemoryBlockInfo"),
    text("GuestGetUsers"),
    text("GuestGetOsInfo"),
    text("GuestGetDisks"),
    text("GuestGetHostName"),
    text("GuestGetTimezone"),
    text("GuestNetworkGetRoute"),
    text("GuestNetworkGetInterfaces"),
    text("GuestGetMemoryBlocks"),
)
