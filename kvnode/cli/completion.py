"""``kvnode completion``: completion of the command line."""

from __future__ import annotations

import click


@click.command("completion")
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
def command(*, shell: str) -> None:
    """Print the completion script of a shell.

    \b
    Example:
      source <(kvnode completion bash)
      kvnode completion fish > ~/.config/fish/completions/kvnode.fish
    """
    from click.shell_completion import get_completion_class  # noqa: PLC0415

    from kvnode.cli.app import cli  # noqa: PLC0415 - it imports the verbs

    found = get_completion_class(shell)
    assert found is not None  # noqa: S101 - the choices above are click's own
    click.echo(found(cli, {}, "kvnode", "_KVNODE_COMPLETE").source())
