"""``kvnode console``: the serial console of a running machine."""

from __future__ import annotations

from pathlib import Path

import click

from kvnode.cli import options, serial


@click.command("console")
@options.vm_name
@options.state_dir
def command(*, name: str, state_dir: Path | None) -> None:
    """Connect this terminal to the serial console of a running machine; Ctrl-] leaves.

    When standard input is no terminal, it is sent to the guest, and the answer is printed until the guest
    falls silent.

    \b
    Example:
      kvnode console demo
      echo poweroff | kvnode console demo
    """
    serial.attach(options.runner(state_dir).console_path(name), name)
