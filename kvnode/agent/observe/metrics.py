"""The agent's metrics (``pkg/monitoring/metrics/virt-handler``; a table of all is in docs/agent.md)."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from kvnode.agent.observe.exposition import Exposition
from kvnode.agent.observe.samples import Seen
from kvnode.kube.histogram import Histogram
from kvnode.kube.objects import split_key
from kvnode.memory.report import MemoryReport

GAUGE, COUNTER = "gauge", "counter"
_NOT_IN_LABELS = re.compile(r"[^0-9A-Za-z_]")
_TICK = os.sysconf("SC_CLK_TCK")
_PAGE = os.sysconf("SC_PAGE_SIZE")


class Queue(Protocol):
    """A queue, as far as it is measured."""

    name: str
    adds: int
    retries: int
    waited: Histogram
    worked: Histogram

    def __len__(self) -> int:
        """Names that could be worked on now."""

    def running(self) -> Mapping[str, float]:
        """The names that are worked on, and seconds since that began."""


@dataclass(frozen=True, slots=True)
class Source:
    """What is measured beside the VMs."""

    node: str
    is_ready: Callable[[], bool]
    queue: Queue
    deprecated_machines: Iterable[str] = ()
    proc: Path = Path("/proc/self")


def expose_agent(source: Source) -> Exposition:
    """Those of the agent itself; to be called in its loop."""
    found = Exposition()
    ready = "Whether VMs may be scheduled to the node."
    found.add("kubevirt_virt_handler_ready_status", GAUGE, ready, float(source.is_ready()), {})
    _expose_queue(source.queue, found)
    old = "Machine types of the node that are deprecated."
    for machine in source.deprecated_machines:
        labels = {"machine_type": machine, "node": source.node}
        found.add("kubevirt_node_deprecated_machine_types", GAUGE, old, 1, labels)
    _expose_process(source.proc, found)
    return found


def expose_vms(seen: Iterable[Seen], node: str, found: Exposition) -> bytes:
    """Add those of the VMs; the answer is the whole, as text."""
    for one in seen:
        _expose_vm(one, node, found)
    return bytes(found)


def _expose_queue(queue: Queue, found: Exposition) -> None:
    running = queue.running().values()
    for name, kind, text, value in (
        ("depth", GAUGE, "Names that could be worked on now.", len(queue)),
        ("adds_total", COUNTER, "Names that were put in.", queue.adds),
        ("retries_total", COUNTER, "Names that came back after a failure.", queue.retries),
        (
            "longest_running_processor_seconds",
            GAUGE,
            "How long the longest pass runs that is under way.",
            max(running, default=0.0),
        ),
        ("unfinished_work_seconds", GAUGE, "How long the passes under way run, together.", sum(running)),
    ):
        found.add(f"kubevirt_workqueue_{name}", kind, text, value, {"name": queue.name})
    waited = "How long names waited for a worker."
    found.add_histogram(
        "kubevirt_workqueue_queue_duration_seconds", waited, queue.waited, {"name": queue.name}
    )
    worked = "How long passes took."
    found.add_histogram(
        "kubevirt_workqueue_work_duration_seconds", worked, queue.worked, {"name": queue.name}
    )


def _expose_process(proc: Path, found: Exposition) -> None:
    """The agent itself, under the names that every exporter uses."""
    try:
        fields = (proc / "stat").read_text().rpartition(")")[2].split()
        files = len(os.listdir(proc / "fd"))  # noqa: PTH208  (nothing of an entry is needed)
    except OSError:
        return
    used = (int(fields[11]) + int(fields[12])) / _TICK
    found.add("process_cpu_seconds_total", COUNTER, "CPU time of the agent.", used, {})
    resident = int(fields[21]) * _PAGE
    found.add("process_resident_memory_bytes", GAUGE, "Resident memory of the agent.", resident, {})
    found.add("process_open_fds", GAUGE, "Files that the agent holds open.", files, {})


def _expose_vm(one: Seen, node: str, found: Exposition) -> None:
    namespace, name = split_key(one.key)
    vm = {"node": node, "namespace": namespace, "name": name}
    own = {_label(key): str(value) for key, value in one.labels.items()}
    for metric, value, labels in one.samples:
        found.add(f"kubevirt_vmi_{metric.name}", metric.kind, metric.text, value, {**own, **vm, **labels})
    if one.memory is not None:
        _expose_memory(one.memory.report, vm, found)


def _expose_memory(report: MemoryReport, vm: Mapping[str, str], found: Exposition) -> None:
    for line in report.processes:
        labels = {**vm, "role": line.role, "pid": str(line.pid)}
        for name, text, value in (
            ("resident", "Resident memory of one of the VM's processes, without the guest's.", line.resident),
            (
                "proportional",
                "The same, each shared page divided among those who share it.",
                line.proportional,
            ),
            ("requested", "Memory that is requested for one of the VM's processes.", line.share),
        ):
            found.add(f"kubevirt_vmi_process_{name}_bytes", GAUGE, text, value, labels)
    for name, text, value in (
        ("guest_resident", "The guest's memory that is backed by memory of the node.", report.guest_resident),
        ("page_tables", "Page tables of the VM's processes.", report.page_tables),
        ("overhead_requested", "Memory that is requested beside the guest's.", report.overhead_requested),
        ("overhead_used", "What is used of it: proportional sizes and page tables.", report.overhead_used),
        ("overhead_headroom", "What is left of it; negative when it is overrun.", report.headroom),
    ):
        found.add(f"kubevirt_vmi_memory_{name}_bytes", GAUGE, text, value, vm)


def _label(key: str) -> str:
    """A VMI's label as one of Prometheus (``domainstats/domainstats.go:31-36``)."""
    return "kubernetes_vmi_label_" + _NOT_IN_LABELS.sub("_", key)
