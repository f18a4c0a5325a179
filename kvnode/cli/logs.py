"""``kvnode logs``: what the guest, the launcher, QEMU or the libvirt daemon wrote."""

from __future__ import annotations

from pathlib import Path

import click

from kvnode.cli import exitcodes, options, output, serial
from kvnode.cli.errors import CliError

SOURCES = ("serial", "launcher", "qemu", "libvirt")


@click.command("logs")
@options.vm_name
@click.option("-f", "--follow", is_flag=True, help="Go on until the machine ends.")
@click.option(
    "-s",
    "--source",
    type=click.Choice(SOURCES),
    default="serial",
    show_default=True,
    help="Whose log to show.",
)
@click.option("--raw", is_flag=True, help="Let the guest's terminal codes through to a terminal.")
@options.state_dir
def command(*, name: str, follow: bool, source: str, raw: bool, state_dir: Path | None) -> None:
    """Show what the guest wrote to its serial console, or another log of a machine.

    \b
    Example:
      kvnode logs demo
      kvnode logs -f demo --source launcher
    """
    runner = options.runner(state_dir)
    paths = runner.log_paths(name)
    path = paths.get(source)
    if path is None or (not path.exists() and not follow):
        held = ", ".join(sorted(key for key, there in paths.items() if there.exists())) or "none yet"
        raise CliError(f"{name} has no {source} log (it has: {held})", code=exitcodes.NOT_FOUND)
    filtered = output.is_terminal() and not raw

    def going() -> bool:
        return follow and runner.get(name).running

    for data in serial.follow(lambda: runner.log_paths(name).get(source), going):
        serial.write_out(serial.plain(data) if filtered else data)
