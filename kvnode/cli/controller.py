"""``kvnode controller``: VMs become VMIs, and VMIs become launcher pods, in a cluster."""

from __future__ import annotations

import asyncio
import logging
import os
import signal
import sys
import uuid
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import click

from kvnode.cli import exitcodes
from kvnode.cli.errors import CliError, one_line

if TYPE_CHECKING:
    from kvnode.controller.ports import Settings
    from kvnode.kube.client import Client
    from kvnode.kube.config import Configuration
    from kvnode.kube.leader import LeaseSettings
    from kvnode.kube.ratelimit import TokenBucket

LEASE = "virt-controller"
"""The Lease that KubeVirt's own controller leads by: beside one another only one of them works."""
USER_AGENT = "kvnode-controller"
FORMAT = "%(asctime)s %(levelname)s %(name)s: %(message)s"


class OneLine(logging.Formatter):
    """A record a line, whatever an object's name or a server's answer has in it."""

    def format(self, record: logging.LogRecord) -> str:
        """The record as text."""
        return one_line(super().format(record))


@click.command("controller")
@click.option(
    "--kubeconfig",
    type=click.Path(path_type=Path, dir_okay=False),
    metavar="FILE",
    help="How to reach the API server.  [default: the pod's service account, $KUBECONFIG, ~/.kube/config]",
)
@click.option(
    "--namespace",
    default="",
    metavar="NAME",
    help="Namespace of the Lease.  [default: that of the pod or of the kubeconfig's context]",
)
@click.option(
    "--watch-namespace",
    default="",
    metavar="NAME",
    help="The only namespace whose machines are looked after.  [default: all]",
)
@click.option(
    "--launcher-image", metavar="IMAGE", help="The launcher's image.  [default: kubevirt/virt-launcher]"
)
@click.option(
    "--image-pull-secret", default="", metavar="NAME", help="Secret that launcher pods pull images with."
)
@click.option(
    "--leader-elect/--no-leader-elect",
    default=True,
    show_default=True,
    help="Work only while the Lease is held, so that several may run.",
)
@click.option(
    "--leader-elect-lease-duration",
    "duration",
    type=click.FloatRange(0, 86_400, min_open=True),
    default=15.0,
    show_default=True,
    metavar="SECONDS",
    help="Time without renewal after which another takes over.",
)
@click.option(
    "--leader-elect-renew-deadline",
    "renew_deadline",
    type=click.FloatRange(0, 86_400, min_open=True),
    default=10.0,
    show_default=True,
    metavar="SECONDS",
    help="Time without renewal after which the leader ends.",
)
@click.option(
    "--leader-elect-retry-period",
    "retry_period",
    type=click.FloatRange(0, 86_400, min_open=True),
    default=2.0,
    show_default=True,
    metavar="SECONDS",
    help="Time between tries.",
)
@click.option(
    "--client-qps",
    type=click.FloatRange(0, 1e6, min_open=True),
    default=200.0,
    show_default=True,
    metavar="NUMBER",
    help="Requests a second at most.",
)
@click.option(
    "--client-burst",
    type=click.IntRange(min=1),
    default=400,
    show_default=True,
    metavar="NUMBER",
    help="Requests at once at most, after a rest.",
)
@click.option("-v", "--verbose", is_flag=True, help="Log every step.")
def command(
    *,
    kubeconfig: Path | None,
    namespace: str,
    watch_namespace: str,
    launcher_image: str | None,
    image_pull_secret: str,
    leader_elect: bool,
    duration: float,
    renew_deadline: float,
    retry_period: float,
    client_qps: float,
    client_burst: int,
    verbose: bool,
) -> int:
    """Look after a cluster's virtual machines, in the place of KubeVirt's virt-controller.

    Machines become instances, and instances become launcher pods. Of several processes one works, and another
    takes over when it ends. It runs until it is told to end (SIGTERM), and leaves the guests running.

    \b
    Example:
      kvnode controller --kubeconfig admin.conf --namespace kubevirt
    """
    from kvnode.kube.config import discover  # noqa: PLC0415 - only where there is a cluster
    from kvnode.kube.errors import KubeError  # noqa: PLC0415
    from kvnode.kube.ratelimit import TokenBucket  # noqa: PLC0415

    log_to_stderr(verbose=verbose)
    settings = _settings(launcher_image, image_pull_secret)
    limiter = TokenBucket(client_qps, client_burst)
    try:
        configuration = discover(kubeconfig)
        where = namespace or configuration.namespace
        lease = _lease(where, duration, renew_deadline, retry_period) if leader_elect else None
        return asyncio.run(_until_told(configuration, settings, watch_namespace, lease, limiter))
    except KubeError as error:
        raise CliError(str(error)) from None


def log_to_stderr(*, verbose: bool) -> None:
    """Log to standard error, a record a line."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(OneLine(FORMAT))
    logging.basicConfig(level=logging.WARNING, handlers=[handler])
    logging.getLogger("kvnode").setLevel(logging.DEBUG if verbose else logging.INFO)


def _settings(launcher_image: str | None, image_pull_secret: str) -> Settings:
    from kvnode.controller.ports import Settings  # noqa: PLC0415

    settings = Settings()
    launcher = replace(settings.launcher, image_pull_secret=image_pull_secret)
    if launcher_image:
        launcher = replace(launcher, launcher_image=launcher_image)
    return replace(settings, launcher=launcher)


def _lease(namespace: str, duration: float, renew_deadline: float, retry_period: float) -> LeaseSettings:
    """The Lease, under an identity that no other process has, on this machine neither."""
    from kvnode.kube.leader import LeaseSettings  # noqa: PLC0415

    identity = f"{os.uname().nodename}_{uuid.uuid4()}"
    try:
        return LeaseSettings(namespace, LEASE, identity, duration, renew_deadline, retry_period)
    except ValueError as error:
        raise click.BadParameter(str(error), param_hint="--leader-elect-lease-duration") from None


async def _until_told(
    configuration: Configuration,
    settings: Settings,
    watch_namespace: str,
    lease: LeaseSettings | None,
    limiter: TokenBucket,
) -> int:
    """Run until SIGTERM; the answer is the exit code."""
    from kvnode.kube.client import Client  # noqa: PLC0415
    from kvnode.kube.leader import LeadershipLost  # noqa: PLC0415

    async with Client(configuration, user_agent=USER_AGENT, limiter=limiter) as client:
        work = asyncio.ensure_future(_work(client, settings, watch_namespace, lease))
        asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, work.cancel)
        try:
            await work
        except asyncio.CancelledError:
            if (task := asyncio.current_task()) is not None and task.cancelling():
                raise  # Ctrl-C
        except LeadershipLost as lost:
            raise CliError(f"{lost}: another may lead now", code=exitcodes.LEADERSHIP_LOST) from None
        except ExceptionGroup as group:
            raise _first(group) from group
    return exitcodes.OK


async def _work(
    client: Client, settings: Settings, watch_namespace: str, lease: LeaseSettings | None
) -> None:
    from kvnode.controller.manager import Manager  # noqa: PLC0415
    from kvnode.kube.client import Client  # noqa: PLC0415
    from kvnode.kube.leader import LeaderElector  # noqa: PLC0415

    manager = Manager(client, settings, namespace=watch_namespace)
    if lease is None:
        await manager.run()
        return
    # The Lease has a client of its own: its renewal waits behind no other request.
    async with Client(client.configuration, user_agent=USER_AGENT) as own:
        await LeaderElector(own, lease).run(manager.run)


def _first(group: ExceptionGroup[Exception]) -> Exception:
    """The first of the failures that is no group itself."""
    first: Exception = group
    while isinstance(first, ExceptionGroup):
        first = first.exceptions[0]
    return first
