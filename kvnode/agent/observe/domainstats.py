"""Metrics of a domain's statistics (``pkg/monitoring/metrics/virt-handler/domainstats``)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any

KIBIBYTE, NANOSECOND, ONE = 1024.0, 1e-9, 1.0
GAUGE, COUNTER = "gauge", "counter"
_STATES: Mapping[Any, str] = {0: "offline", 1: "running", 2: "blocked"}
MOST = 5000
"""Samples of one VM; a launcher that tells of more is cut short."""


@dataclass(frozen=True, slots=True)
class Metric:
    """A metric that is one field of the statistics."""

    name: str
    field: str
    """Beside it stands the same with ``Set``: whether it was measured."""
    factor: float
    kind: str
    text: str


CPU = (
    Metric("cpu_usage_seconds_total", "Time", NANOSECOND, COUNTER, "CPU time of the VM in all modes."),
    Metric("cpu_user_usage_seconds_total", "User", NANOSECOND, COUNTER, "CPU time in user mode."),
    Metric("cpu_system_usage_seconds_total", "System", NANOSECOND, COUNTER, "CPU time in the kernel."),
)
MEMORY = (
    Metric("memory_resident_bytes", "RSS", KIBIBYTE, GAUGE, "Resident memory of the VM's process."),
    Metric("memory_available_bytes", "Available", KIBIBYTE, GAUGE, "Memory that the guest sees."),
    Metric("memory_unused_bytes", "Unused", KIBIBYTE, GAUGE, "Memory that the guest uses for nothing."),
    Metric("memory_cached_bytes", "Cached", KIBIBYTE, GAUGE, "Memory that the guest uses for files' pages."),
    Metric("memory_swap_in_traffic_bytes", "SwapIn", KIBIBYTE, GAUGE, "Read from the guest's swap."),
    Metric("memory_swap_out_traffic_bytes", "SwapOut", KIBIBYTE, GAUGE, "Written to the guest's swap."),
    Metric("memory_pgmajfault_total", "MajorFault", ONE, COUNTER, "Page faults that needed the disk."),
    Metric("memory_pgminfault_total", "MinorFault", ONE, COUNTER, "Page faults that needed no disk."),
    Metric("memory_actual_balloon_bytes", "ActualBalloon", KIBIBYTE, GAUGE, "What the balloon leaves."),
    Metric("memory_usable_bytes", "Usable", KIBIBYTE, GAUGE, "What the guest could use without swapping."),
    Metric("memory_domain_bytes", "Total", KIBIBYTE, GAUGE, "Memory of the domain."),
)
LOAD = (
    Metric("guest_load_1m", "Load1m", ONE, GAUGE, "The guest's load over a minute."),
    Metric("guest_load_5m", "Load5m", ONE, GAUGE, "The guest's load over five minutes."),
    Metric("guest_load_15m", "Load15m", ONE, GAUGE, "The guest's load over fifteen minutes."),
)
NETWORK = (
    Metric("network_receive_bytes_total", "RxBytes", ONE, COUNTER, "Bytes to the guest."),
    Metric("network_transmit_bytes_total", "TxBytes", ONE, COUNTER, "Bytes from the guest."),
    Metric("network_receive_packets_total", "RxPkts", ONE, COUNTER, "Packets to the guest."),
    Metric("network_transmit_packets_total", "TxPkts", ONE, COUNTER, "Packets from the guest."),
    Metric("network_receive_errors_total", "RxErrs", ONE, COUNTER, "Errors on the way to the guest."),
    Metric("network_transmit_errors_total", "TxErrs", ONE, COUNTER, "Errors on the way from the guest."),
    Metric("network_receive_packets_dropped_total", "RxDrop", ONE, COUNTER, "Packets dropped before it."),
    Metric("network_transmit_packets_dropped_total", "TxDrop", ONE, COUNTER, "Packets dropped behind it."),
)
STORAGE = (
    Metric("storage_iops_read_total", "RdReqs", ONE, COUNTER, "Reads."),
    Metric("storage_iops_write_total", "WrReqs", ONE, COUNTER, "Writes."),
    Metric("storage_read_traffic_bytes_total", "RdBytes", ONE, COUNTER, "Bytes read."),
    Metric("storage_write_traffic_bytes_total", "WrBytes", ONE, COUNTER, "Bytes written."),
    Metric("storage_read_times_seconds_total", "RdTimes", NANOSECOND, COUNTER, "Time spent reading."),
    Metric("storage_write_times_seconds_total", "WrTimes", NANOSECOND, COUNTER, "Time spent writing."),
    Metric("storage_flush_requests_total", "FlReqs", ONE, COUNTER, "Flushes."),
    Metric("storage_flush_times_seconds_total", "FlTimes", NANOSECOND, COUNTER, "Time spent flushing."),
)
VCPU = (
    Metric("vcpu_wait_seconds_total", "Wait", NANOSECOND, COUNTER, "Time that the vCPU waited for I/O."),
    Metric("vcpu_delay_seconds_total", "Delay", NANOSECOND, COUNTER, "Time that it waited for a CPU."),
)
VCPU_TIME = Metric("vcpu_seconds_total", "Time", NANOSECOND, COUNTER, "Time that the vCPU spent in a state.")
TRAFFIC = {
    "rx": Metric("network_traffic_bytes_total", "RxBytes", ONE, COUNTER, "Bytes in both ways (deprecated)."),
    "tx": Metric("network_traffic_bytes_total", "TxBytes", ONE, COUNTER, "Bytes in both ways (deprecated)."),
}
AFFINITY = Metric(
    "node_cpu_affinity", "", ONE, GAUGE, "Pairs of a vCPU and a CPU of the node that it may use."
)
FILESYSTEM = (
    Metric("filesystem_capacity_bytes", "totalBytes", ONE, GAUGE, "Size of a file system in the guest."),
    Metric("filesystem_used_bytes", "usedBytes", ONE, GAUGE, "What is used of it."),
)

Sample = tuple[Metric, float, dict[str, str]]
"""A metric, its value in the base unit, and labels beside the VM's."""


def samples(stats: Mapping[str, Any], filesystems: Sequence[Any] = ()) -> list[Sample]:
    """The samples of a ``DomainStats`` and of the guest's file systems, at most `MOST`."""
    return list(islice(_samples(stats, filesystems), MOST))


def _samples(stats: Mapping[str, Any], filesystems: Sequence[Any]) -> Iterator[Sample]:
    for metrics, part in ((CPU, "Cpu"), (MEMORY, "Memory"), (LOAD, "Load")):
        yield from _of(metrics, stats.get(part), {})
    for number, one in enumerate(_mappings(stats.get("Vcpu"))):
        state = one.get("State")
        named = {
            "id": str(number),
            "state": _STATES.get(state, "unknown") if isinstance(state, int) else "unknown",
        }
        yield from _of((VCPU_TIME,), one, named)
        yield from _of(VCPU, one, {"id": str(number)})
    for one in _mappings(stats.get("Net")):
        if one.get("NameSet"):
            name = str(one.get("Alias") if one.get("AliasSet") else one.get("Name"))
            yield from _of(NETWORK, one, {"interface": name})
            for way, metric in TRAFFIC.items():
                yield from _of((metric,), one, {"interface": name, "type": way})
    for one in _mappings(stats.get("Block")):
        if one.get("NameSet"):
            yield from _of(STORAGE, one, {"drive": str(one.get("Alias") or one.get("Name"))})
    cpus = stats.get("CPUMap")
    if stats.get("CPUMapSet") and isinstance(cpus, list):
        yield AFFINITY, float(sum(one.count(True) for one in cpus if isinstance(one, list))), {}
    for one in _mappings(filesystems):
        labels = {label: str(one.get(field) or "") for label, field in _FILESYSTEM_LABELS.items()}
        for metric in FILESYSTEM:
            if (value := _number(one.get(metric.field))) is not None:
                yield metric, value, labels


_FILESYSTEM_LABELS = {
    "disk_name": "diskName",
    "mount_point": "mountPoint",
    "file_system_type": "fileSystemType",
}


def _of(metrics: Sequence[Metric], measured: Any, labels: dict[str, str]) -> Iterator[Sample]:
    if not isinstance(measured, Mapping):
        return
    for metric in metrics:
        value = _number(measured.get(metric.field)) if measured.get(f"{metric.field}Set") else None
        if value is not None:
            yield metric, value * metric.factor, labels


def _number(value: Any) -> float | None:
    return value if isinstance(value, int | float) and not isinstance(value, bool) else None


def _mappings(found: Any) -> Iterator[Mapping[str, Any]]:
    return (one for one in found if isinstance(one, Mapping)) if isinstance(found, list) else iter(())
