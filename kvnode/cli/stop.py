"""``kvnode stop``: shut virtual machines down."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from kvnode.cli import options, output
from kvnode.cli.app import as_cli_error, complain
from kvnode.cli.errors import one_line

if TYPE_CHECKING:
    from kvnode.standalone.model import StopResult

WORDS = {
    "shutdown": "shut down",
    "destroyed": "was ended",
}


@click.command("stop")
@options.vm_names(required=False)
@click.option("--all", "every", is_flag=True, help="Stop every machine that runs.")
@click.option("--now", is_flag=True, help="End it at once, without asking the guest.")
@click.option(
    "--timeout",
    type=click.FloatRange(min=0),
    help="Seconds to give the guest.  [default: the machine's grace period]",
)
@click.option("--forget", is_flag=True, help="Remove what is kept of the machine then: its record and logs.")
@options.state_dir
@options.form("text", "json", "yaml", default="text")
def command(
    *,
    names: tuple[str, ...],
    every: bool,
    now: bool,
    timeout: float | None,
    forget: bool,
    state_dir: Path | None,
    form: str,
) -> int:
    """Press the guest's power button, and end it when its grace period is over.

    \b
    Example:
      kvnode stop demo
      kvnode stop --now --all
    """
    if bool(names) == every:
        raise click.UsageError("give the machines' names, or --all")
    runner = options.runner(state_dir, progress=form == "text")
    if every:
        names = tuple(f"{vm.namespace}/{vm.name}" for vm in runner.list_vms(ended=False))
    results: list[dict[str, Any]] = []
    code = 0
    for name in names:
        try:
            result = runner.stop(name, now=now, timeout=timeout)
            if forget:
                runner.forget(name)
        except Exception as error:
            known = as_cli_error(error)
            if known is None:
                raise
            complain(known.line())
            code = code or known.code
            continue
        results.append(dataclasses.asdict(result))
        if form == "text":
            click.echo(_sentence(result))
    if form != "text":
        output.emit(results, form)
    return code


def _sentence(result: StopResult) -> str:
    message = one_line(result.message)
    vm = f"{result.namespace}/{result.name}"
    if result.outcome == "not-running":
        return f"{vm} was not running" + (f", since {message}" if message else "")
    return f"{vm} {WORDS[result.outcome]} after {result.seconds:.1f} s" + (f": {message}" if message else "")
