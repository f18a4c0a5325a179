"""What the verbs share that serve a cluster until they are told to end."""

from __future__ import annotations

import asyncio
import logging
import signal
import sys
from collections.abc import Coroutine
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from kvnode.cli import exitcodes
from kvnode.cli.errors import CliError, one_line

if TYPE_CHECKING:
    from kvnode.kube.config import Configuration

FORMAT = "%(asctime)s %(levelname)s %(name)s: %(message)s"

kubeconfig_option = click.option(
    "--kubeconfig",
    type=click.Path(path_type=Path, dir_okay=False),
    metavar="FILE",
    help="How to reach the API server.  [default: $KUBECONFIG, the pod's service account, ~/.kube/config]",
)
verbose_option = click.option("-v", "--verbose", is_flag=True, help="Log more.")


def cluster_of(kubeconfig: Path | None) -> Configuration:
    """How to reach the API server that is meant.

    Raises:
        CliError: there is no telling.
    """
    from kvnode.kube.config import discover  # noqa: PLC0415 - only where there is a cluster
    from kvnode.kube.errors import KubeError  # noqa: PLC0415

    try:
        return discover(kubeconfig)
    except KubeError as error:
        if kubeconfig is not None:
            raise CliError(str(error)) from None
        raise CliError(f"no cluster: {error}: give --kubeconfig, or set KUBECONFIG") from None


class OneLine(logging.Formatter):
    """A record a line, whatever an object's name or a server's answer has in it."""

    def format(self, record: logging.LogRecord) -> str:
        """The record as text."""
        return one_line(super().format(record))


def log_to_stderr(*, verbose: bool) -> None:
    """Log to standard error, a record a line."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(OneLine(FORMAT))
    logging.basicConfig(level=logging.WARNING, handlers=[handler])
    logging.getLogger("kvnode").setLevel(logging.DEBUG if verbose else logging.INFO)


async def until_told(work: Coroutine[Any, Any, None]) -> int:
    """Do the work until SIGTERM, which cancels it; gives the exit code.

    Raises:
        Exception: the work failed; of several failures the first, and no group of them.
    """
    task = asyncio.ensure_future(work)
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, task.cancel)
    try:
        await task
    except asyncio.CancelledError:
        if (current := asyncio.current_task()) is not None and current.cancelling():
            raise  # Ctrl-C
    except ExceptionGroup as group:
        raise first_of(group) from group
    return exitcodes.OK


def first_of(group: ExceptionGroup[Exception]) -> Exception:
    """The first of the failures that is no group itself."""
    first: Exception = group
    while isinstance(first, ExceptionGroup):
        first = first.exceptions[0]
    return first
