"""``kvnode xml``: the libvirt domain of a machine."""

from __future__ import annotations

from pathlib import Path

import click

from kvnode.cli import options, output


@click.command("xml")
@options.vm_name
@click.option("--adapted", is_flag=True, help="As it was given to the libvirt of this machine.")
@options.indent
@options.state_dir
def command(*, name: str, adapted: bool, indent: bool | None, state_dir: Path | None) -> None:
    """Print the libvirt domain that a machine was converted to.

    With --adapted: as it was defined, after what the installed libvirt cannot take was changed.

    \b
    Example:
      kvnode xml demo
      diff <(kvnode xml demo) <(kvnode xml --adapted demo)
    """
    xml = options.runner(state_dir).xml(name, adapted=adapted).decode().rstrip("\n")
    click.echo(output.pretty_xml(xml) if indent or (indent is None and output.is_terminal()) else xml)
