"""The memory report over gRPC."""

from __future__ import annotations

from kvnode.memory.report import MemoryReport, ProcessMemory
from kvnode.rpc.client import Channel
from kvnode.rpc.memory import bind_memory, from_message, get_memory_report, to_message
from tests.rpc.helpers import run, serving

MIB = 2**20
REPORT = MemoryReport(
    namespace="ns",
    name="vm",
    domain_type="kvm",
    guest_size=4096 * MIB,
    guest_resident=900 * MIB,
    guest_backing="memfd",
    processes=(
        ProcessMemory(
            role="qemu",
            pid=42,
            command="qemu-system-x86_64",
            resident=60 * MIB,
            proportional=55 * MIB,
            peak=70 * MIB,
            share=62 * MIB,
            terms=("qemu", "vcpus"),
            verdict="within",
        ),
        ProcessMemory("other", 43, "sh", MIB, MIB, MIB, 0, (), "no share"),
    ),
    page_tables=2 * MIB,
    page_tables_share=8 * MIB,
    overhead_used=300 * MIB,
    overhead_requested=250 * MIB,
    headroom=-50 * MIB,
    verdict="over",
    unassigned=(("tpm", 53 * MIB),),
)


def test_a_report_comes_back_from_its_message():
    message = to_message(REPORT.as_dict())
    assert from_message(type(message).FromString(message.SerializeToString())) == REPORT.as_dict()


def test_every_field_of_the_report_has_a_field_in_the_message():
    message = to_message(REPORT.as_dict())
    assert {field.name for field in message.DESCRIPTOR.fields} == set(REPORT.as_dict())
    process = REPORT.as_dict()["processes"][0]
    assert {field.name for field in message.processes[0].DESCRIPTOR.fields} == set(process)


def test_a_report_over_a_socket(tmp_path):
    async def report():
        return REPORT.as_dict()

    async def body():
        async with serving(tmp_path / "s", bind_memory(report)), Channel(tmp_path / "s") as channel:
            return await get_memory_report(channel)

    assert run(body()) == REPORT.as_dict()
