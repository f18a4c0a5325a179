"""``kvnode memory``: where the memory of a running machine goes."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from kvnode.cli import options, output

if TYPE_CHECKING:
    from kvnode.memory.report import MemoryReport

HEADERS = ("PROCESS", "PID", "RESIDENT", "PROPORTIONAL", "PEAK", "REQUESTED", "VERDICT")
RIGHT = frozenset(["PID", "RESIDENT", "PROPORTIONAL", "PEAK", "REQUESTED"])


@click.command("memory")
@options.vm_name
@options.state_dir
@options.form("text", "json", "yaml", default="text")
def command(*, name: str, state_dir: Path | None, form: str) -> None:
    """Measure the processes of a running machine against the memory that was requested for it.

    The guest's own memory is taken out of QEMU's line. The total is in proportional sizes, in which shared
    pages are divided among their users.

    \b
    Example:
      kvnode memory demo
      kvnode memory demo -o json | jq .headroom
    """
    report = options.runner(state_dir).memory(name)
    if form != "text":
        output.emit(report.as_dict(), form)
        return
    kind = "KVM" if report.domain_type == "kvm" else "software emulation"
    click.echo(f"{report.namespace}/{report.name} ({kind})")
    click.echo(
        f"guest memory: {output.size(report.guest_resident)} of {output.size(report.guest_size)} in use "
        f"({report.guest_backing})"
    )
    output.table(HEADERS, rows(report), right=RIGHT)
    click.echo(summary(report))


def rows(report: MemoryReport) -> list[tuple[str, ...]]:
    """The report as lines of a table: processes, page tables, the total."""
    size = output.size
    lines: list[tuple[str, ...]] = [
        (
            p.role if p.role != "other" else f"other: {p.command}",
            str(p.pid),
            size(p.resident),
            size(p.proportional),
            size(p.peak),
            size(p.share) if p.share else "-",
            p.verdict,
        )
        for p in report.processes
    ]
    tables = "within" if report.page_tables <= report.page_tables_share else "over"
    share = report.page_tables_share
    used = size(report.page_tables)
    lines.append(
        ("page tables", "", used, used, "", size(share) if share else "-", tables if share else "no share")
    )
    total = (size(report.overhead_used), "", size(report.overhead_requested), report.verdict)
    lines.append(("total", "", "", *total))
    return lines


def summary(report: MemoryReport) -> str:
    """What the report comes to, in a line or two."""
    if report.headroom >= 0:
        text = f"headroom: {output.size(report.headroom)}"
    else:
        text = f"overrun: {output.size(-report.headroom)} over what the formula requests"
    if report.unassigned:
        parts = ", ".join(f"{name} {output.size(count)}" for name, count in report.unassigned)
        text += f"\nrequested for no process seen here: {parts}"
    return text
