"""The command group: verbs found by name, and every way that a command can end."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from importlib import import_module
from typing import Any

import click

from kvnode import __version__
from kvnode.cli import exitcodes
from kvnode.cli.errors import CliError, one_line

VERBS = {
    "up": "Start virtual machines on this machine.",
    "ps": "List the virtual machines of this machine.",
    "logs": "Show what the guest, the launcher or QEMU wrote.",
    "console": "Connect to the serial console.",
    "xml": "Print a running machine's libvirt domain.",
    "stop": "Shut virtual machines down.",
    "top": "Watch what the machines' memory is spent on.",
    "memory": "Report once what a machine's memory is spent on.",
    "convert": "Turn manifests into libvirt domain XML.",
    "explain": "Say where each line of a domain comes from.",
    "diff": "Compare two manifests' domains, and say what needs a restart.",
    "validate": "Check manifests against KubeVirt's rules.",
    "defaults": "Fill in what a manifest leaves out.",
    "pod": "Render the pods that machines run in.",
    "overhead": "Compute a machine's memory overhead.",
    "controller": "Look after a cluster's virtual machines.",
    "agent": "Look after the machines of a cluster's node.",
    "webhook": "Answer what a cluster asks before it stores machines.",
    "completion": "Print the completion script of a shell.",
}
"""Every verb and its line in ``kvnode --help``; the verb's code is in the module of its name."""


class ClosedPipeError(Exception):
    """Whoever reads our output went away; click would make a failure of a BrokenPipeError."""


class Verbs(click.Group):
    """A group that imports a verb's module only when the verb is run."""

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002
        """The verbs, in the order in which a user meets them."""
        return list(VERBS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002
        """The verb's command, or None."""
        if cmd_name not in VERBS:
            return None
        command: click.Command = import_module(f"kvnode.cli.{cmd_name}").command
        return command

    def invoke(self, ctx: click.Context) -> Any:
        """Run the verb."""
        try:
            return super().invoke(ctx)
        except BrokenPipeError:
            raise ClosedPipeError from None

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:  # noqa: ARG002
        """List the verbs without loading their modules."""
        with formatter.section("Commands"):
            formatter.write_dl(list(VERBS.items()))


@click.command(cls=Verbs, no_args_is_help=True, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, "-V", "--version", prog_name="kvnode", message="%(prog)s %(version)s")
def cli() -> None:
    """Run KubeVirt's virtual machines on this machine, and look into what they become.

    \b
    Example:
      kvnode up vm.yaml --image system=disk.qcow2
      kvnode convert vm.yaml
    """


def run(arguments: Sequence[str]) -> int:
    """Run the command line and return its exit code; whatever goes wrong is told in one line on standard
    error.
    """
    _open_missing_streams()
    try:
        answer = cli.main(args=list(arguments), prog_name="kvnode", standalone_mode=False)
        sys.stdout.flush()
    except click.exceptions.Exit as stop:
        return stop.exit_code
    except click.UsageError as error:
        return _usage(error)
    except (click.Abort, KeyboardInterrupt):
        return exitcodes.INTERRUPTED
    except (BrokenPipeError, ClosedPipeError):
        # Whoever read our output has seen enough. Python would complain once more while it shuts down.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return exitcodes.OK
    except Exception as error:  # the last resort: one line instead of a traceback
        return _failed(error)
    return answer if isinstance(answer, int) else exitcodes.OK


def _open_missing_streams() -> None:
    """Give the command the standard streams that it was started without (``<&-``): nothing is in or comes of
    them.
    """
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:
            setattr(sys, name, open(os.devnull, mode, encoding="utf-8"))  # noqa: PTH123, SIM115


def _usage(error: click.UsageError) -> int:
    if isinstance(error, getattr(click.exceptions, "NoArgsIsHelpError", ())):
        click.echo(error.format_message(), err=True)
        return exitcodes.USAGE
    path = error.ctx.command_path if error.ctx else "kvnode"
    complain(f"{one_line(error.format_message()).rstrip('.')} (see `{path} --help`)")
    return exitcodes.USAGE


def _failed(error: Exception) -> int:
    if os.environ.get("KVNODE_TRACEBACK"):
        raise error
    known = as_cli_error(error)
    if known is not None:
        complain(known.line())
        return known.code
    complain(f"internal error, please report it: {type(error).__name__}: {one_line(str(error))}")
    return exitcodes.INTERNAL


def as_cli_error(error: Exception) -> CliError | None:
    """The error that a user can do something about in an exception, or None for a defect."""
    if isinstance(error, CliError):
        return error
    if isinstance(error, click.ClickException):
        return CliError(error.format_message())
    # Told apart by shape, so that no part that a verb did not load is loaded to report its error.
    code: Any = getattr(error, "exit_code", None)
    message: Any = getattr(error, "message", None)
    if isinstance(message, str) and isinstance(getattr(error, "field", None), str):
        field: str = getattr(error, "field", "")
        return CliError(message, field=field, code=code if isinstance(code, int) else exitcodes.FAILED)
    if isinstance(error, ModuleNotFoundError) and error.name in (
        "libvirt",
        "grpc",
        "google",
        "pyroute2",
        "aiohttp",
        "rich",
        "yaml",
        "orjson",
    ):
        return CliError(
            f"the Python package {error.name} is missing: pip install 'kvnode[node]'",
            code=exitcodes.ENVIRONMENT,
        )
    if isinstance(error, OSError):
        name = error.filename if isinstance(error.filename, str) else ""
        return CliError(error.strerror or str(error), source=name)
    return None


def complain(text: str) -> None:
    """Write one line of trouble to standard error."""
    click.echo(f"kvnode: {text}", err=True)
