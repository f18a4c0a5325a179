"""``kvnode ps``: the virtual machines of this machine."""

from __future__ import annotations

import dataclasses
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

import click

from kvnode.cli import options, output
from kvnode.cli.errors import one_line

if TYPE_CHECKING:
    from kvnode.standalone.model import VmInfo

HEADERS = ("NAMESPACE", "NAME", "PHASE", "AGE", "VCPUS", "MEMORY", "TYPE", "PID", "MESSAGE")


@click.command("ps")
@click.option("-r", "--running", is_flag=True, help="Leave out machines that have ended.")
@click.option("-q", "--quiet", is_flag=True, help="Print names alone.")
@options.state_dir
@options.form("text", "json", "yaml", default="text")
def command(*, running: bool, quiet: bool, state_dir: Path | None, form: str) -> None:
    """List the virtual machines of this machine.

    What a killed process left behind is cleaned up first.

    \b
    Example:
      kvnode ps
      kvnode ps -o json | jq -r '.[].name'
    """
    found = options.runner(state_dir).list_vms(ended=not running)
    if form != "text":
        output.emit([dataclasses.asdict(vm) for vm in found], form)
    elif quiet:
        for vm in found:
            click.echo(f"{vm.namespace}/{vm.name}")
    elif found:
        now = datetime.now(UTC)
        output.table(
            HEADERS, [_row(vm, now) for vm in found], right=frozenset(["AGE", "VCPUS", "MEMORY", "PID"])
        )
    else:
        click.echo("No virtual machines. Start one: kvnode up vm.yaml", err=True)


def _row(vm: VmInfo, now: datetime) -> tuple[str, ...]:
    return (
        vm.namespace,
        vm.name,
        vm.phase,
        age(vm.created, now),
        str(vm.vcpus),
        output.size(vm.memory_bytes),
        vm.domain_type,
        str(vm.pid) if vm.pid else "-",
        one_line(vm.message),
    )


def age(since: str, now: datetime) -> str:
    """The time from an RFC 3339 time until now, in the largest unit that gives two digits or so; "-" when
    unknown.
    """
    try:
        seconds = max(0, int((now - datetime.fromisoformat(since)).total_seconds()))
    except (ValueError, TypeError):
        return "-"
    for unit, length in (("d", 86400), ("h", 3600), ("m", 60)):
        if seconds >= 2 * length:
            return f"{seconds // length}{unit}"
    return f"{seconds}s"
