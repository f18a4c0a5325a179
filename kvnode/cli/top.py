"""``kvnode top``: the machines' memory and CPU use, live."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from kvnode.cli import exitcodes, memory, options, output

if TYPE_CHECKING:
    from kvnode.memory.report import MemoryReport
    from kvnode.standalone.model import VmInfo
    from kvnode.standalone.runner import Runner

HEADERS = (
    "NAMESPACE",
    "NAME",
    "PHASE",
    "CPU",
    "GUEST RAM",
    "OF",
    "OVERHEAD",
    "REQUESTED",
    "HEADROOM",
    "VERDICT",
)
RIGHT = frozenset(["CPU", "GUEST RAM", "OF", "OVERHEAD", "REQUESTED", "HEADROOM"])


@dataclass
class Sample:
    """One machine at one moment."""

    vm: VmInfo
    report: MemoryReport | None
    cpu: float | None
    """Share of one CPU used since the sample before, 1.0 being all of it; None the first time."""

    def row(self) -> tuple[str, ...]:
        """The sample as a line of the table."""
        size, r = output.size, self.report
        cpu = "-" if self.cpu is None else f"{self.cpu:.0%}"
        start = (self.vm.namespace, self.vm.name, self.vm.phase, cpu)
        if r is None:
            return (*start, "-", "-", "-", "-", "-", "-")
        numbers = (r.guest_resident, r.guest_size, r.overhead_used, r.overhead_requested, r.headroom)
        return (*start, *(size(number) for number in numbers), r.verdict)

    def as_dict(self) -> dict[str, Any]:
        """The sample ready for JSON."""
        return {
            "namespace": self.vm.namespace,
            "name": self.vm.name,
            "phase": self.vm.phase,
            "cpu": self.cpu,
            "memory": self.report.as_dict() if self.report else None,
        }


@click.command("top")
@options.vm_names(required=False)
@click.option(
    "-d",
    "--delay",
    type=click.FloatRange(min=0.1),
    default=2.0,
    show_default=True,
    help="Seconds between refreshes.",
)
@click.option("-n", "--count", type=click.IntRange(min=1), help="End after so many refreshes.")
@click.option("-p", "--processes", is_flag=True, help="Show each machine's processes.")
@options.state_dir
@options.form("text", "json", default="text")
def command(
    *,
    names: tuple[str, ...],
    delay: float,
    count: int | None,
    processes: bool,
    state_dir: Path | None,
    form: str,
) -> int:
    """Watch what the running machines' memory is spent on; Ctrl-C ends it.

    Without a terminal, the table is printed once, or as often as --count says. -o json prints one line a
    refresh.

    \b
    Example:
      kvnode top
      kvnode top demo --processes --delay 1
    """
    runner = options.runner(state_dir)
    live = form == "text" and output.is_terminal()
    turns = count if count or live or form == "json" else 1
    samples = _samples(runner, names, delay, turns)
    if form == "json":
        for sample in samples:
            click.echo(output.to_json_line([s.as_dict() for s in sample]))
        return exitcodes.OK
    if not live:
        for sample in samples:
            click.echo(
                "\n\n".join(
                    output.plain_table(*part[:2], right=part[2]) for part in _tables(sample, processes)
                )
            )
        return exitcodes.OK
    try:
        _show_live(samples, processes)
    except KeyboardInterrupt:
        return exitcodes.OK
    return exitcodes.OK


Part = tuple[tuple[str, ...], list[tuple[str, ...]], frozenset[str]]


def _show_live(samples: Iterator[list[Sample]], processes: bool) -> None:
    from rich.console import Group  # noqa: PLC0415
    from rich.live import Live  # noqa: PLC0415

    with Live(auto_refresh=False, screen=True) as live:
        for sample in samples:
            parts = _tables(sample, processes)
            live.update(Group(*(output.rich_table(*part[:2], right=part[2]) for part in parts)), refresh=True)


def _tables(sample: list[Sample], processes: bool) -> list[Part]:
    parts: list[Part] = [(HEADERS, [s.row() for s in sample], RIGHT)]
    if processes:
        for s in sample:
            if s.report is not None:
                headers = (f"{s.vm.namespace}/{s.vm.name}", *memory.HEADERS[1:])
                parts.append((headers, memory.rows(s.report), memory.RIGHT))
    return parts


def _samples(
    runner: Runner, names: tuple[str, ...], delay: float, turns: int | None
) -> Iterator[list[Sample]]:
    """A sample of every machine asked for, again and again."""
    used: dict[str, float] = {}
    at = 0.0
    turn = 0
    while turns is None or turn < turns:
        if turn:
            time.sleep(delay)
        turn += 1
        vms = [runner.get(name) for name in names] if names else runner.list_vms(ended=False)
        now = time.monotonic()
        current = {vm.uid: _cpu_seconds(vm) for vm in vms}
        yield [
            Sample(vm, _measured(runner, vm), _share(used.get(vm.uid), current[vm.uid], now - at))
            for vm in vms
        ]
        used, at = current, now


def _measured(runner: Runner, vm: VmInfo) -> MemoryReport | None:
    from kvnode.standalone.errors import StandaloneError  # noqa: PLC0415

    if not vm.running:
        return None
    try:
        return runner.memory(f"{vm.namespace}/{vm.name}")
    except StandaloneError:
        # It may end between the look at it and the measurement.
        return None


def _share(before: float | None, now: float, seconds: float) -> float | None:
    return None if before is None or seconds <= 0 else max(0.0, now - before) / seconds


def _cpu_seconds(vm: VmInfo) -> float:
    """CPU time of the machine's processes so far, seconds (proc(5), fields utime and stime)."""
    ticks = 0
    for pid in vm.pids.values():
        try:
            fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
            ticks += int(fields[11]) + int(fields[12])
        except (OSError, IndexError, ValueError):
            continue
    return ticks / os.sysconf("SC_CLK_TCK")
