"""The memory report over gRPC (``kvnode.memory.v1``), an addition to what KubeVirt's launcher serves.

A report crosses this border as plain data, under the names of ``kvnode.memory.report.MemoryReport``; sizes
are in bytes.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from google.protobuf.message import Message

from kvnode.rpc import memory_v1_pb2
from kvnode.rpc.client import Channel
from kvnode.rpc.memory_v1_pb2 import MemoryReportRequest, MemoryReportResponse, OverheadTerm, ProcessMemory
from kvnode.rpc.runtime import grpc
from kvnode.rpc.service import Service

MEMORY = Service.of(memory_v1_pb2.DESCRIPTOR, "Memory")

#: Seconds that a report may take: QEMU's mappings are walked for it.
REPORT_SECONDS = 20.0

_VERDICTS = {
    "no share": memory_v1_pb2.NO_SHARE,
    "within": memory_v1_pb2.WITHIN,
    "over": memory_v1_pb2.OVER,
}
_VERDICT_NAMES = {number: name for name, number in _VERDICTS.items()}


def to_message(report: Mapping[str, Any]) -> memory_v1_pb2.MemoryReport:
    """A report (``MemoryReport.as_dict()``) as a message."""
    plain = {k: v for k, v in report.items() if k not in ("processes", "verdict", "unassigned")}
    return memory_v1_pb2.MemoryReport(
        **plain,
        processes=[
            ProcessMemory(**{**process, "verdict": _VERDICTS[process["verdict"]]})
            for process in report["processes"]
        ],
        verdict=_VERDICTS[report["verdict"]],
        unassigned=[OverheadTerm(name=name, bytes=size) for name, size in report["unassigned"]],
    )


def from_message(message: memory_v1_pb2.MemoryReport) -> dict[str, Any]:
    """The message as what :func:`to_message` takes."""
    report = {field.name: getattr(message, field.name) for field in message.DESCRIPTOR.fields}
    report["processes"] = tuple(_process(process) for process in message.processes)
    report["verdict"] = _VERDICT_NAMES.get(message.verdict, "no share")
    report["unassigned"] = tuple((term.name, term.bytes) for term in message.unassigned)
    return report


def _process(message: ProcessMemory) -> dict[str, Any]:
    process = {field.name: getattr(message, field.name) for field in message.DESCRIPTOR.fields}
    process["terms"] = tuple(message.terms)
    process["verdict"] = _VERDICT_NAMES.get(message.verdict, "no share")
    return process


def bind_memory(report: Callable[[], Awaitable[Mapping[str, Any]]]) -> grpc.GenericRpcHandler:
    """Return what a launcher's server registers to serve reports made by ``report``."""

    async def get(_request: object, _context: object) -> Message:
        return MemoryReportResponse(report=to_message(await report()))

    return MEMORY.bind({"GetMemoryReport": get})


async def get_memory_report(channel: Channel) -> dict[str, Any]:
    """Ask the launcher at the other end for a report; raises RpcError when the call fails."""
    answer = await channel.call(
        MEMORY, "GetMemoryReport", MemoryReportRequest(), MemoryReportResponse, REPORT_SECONDS
    )
    return from_message(answer.report)
