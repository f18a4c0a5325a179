"""``kvnode controller``: VMs become VMIs, and VMIs become launcher pods, in a cluster."""

from __future__ import annotations

import asyncio
import os
import uuid
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from kvnode.cli import exitcodes
from kvnode.cli.errors import CliError
from kvnode.cli.serving import cluster_of, kubeconfig_option, log_to_stderr, until_told, verbose_option

if TYPE_CHECKING:
    from kvnode.controller.ports import Settings
    from kvnode.kube.client import Client
    from kvnode.kube.config import Configuration
    from kvnode.kube.leader import LeaseSettings
    from kvnode.kube.ratelimit import TokenBucket

FC = TypeVar("FC", bound=Callable[..., Any])

LEASE = "virt-controller"
"""The Lease that KubeVirt's own controller leads by: beside one another only one of them works."""
USER_AGENT = "kvnode-controller"


def _seconds(name: str, default: float, text: str) -> Callable[[FC], FC]:
    """An option of the Lease's times."""
    return click.option(
        f"--leader-elect-{name}",
        name.replace("-", "_"),
        type=click.FloatRange(0, 86_400, min_open=True),
        default=default,
        show_default=True,
        metavar="SECONDS",
        help=text,
    )


@click.command("controller")
@kubeconfig_option
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
    "--rerun-evicted",
    is_flag=True,
    help="Run a RerunOnFailure machine again whose guest shut down well because its pod was deleted.",
)
@click.option(
    "--leader-elect/--no-leader-elect",
    default=True,
    show_default=True,
    help="Work only while the Lease is held, so that several may run.",
)
@_seconds("lease-duration", 15.0, "Time without renewal after which another takes over.")
@_seconds("renew-deadline", 10.0, "Time without renewal after which the leader ends.")
@_seconds("retry-period", 2.0, "Time between tries.")
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
@verbose_option
def command(
    *,
    kubeconfig: Path | None,
    namespace: str,
    watch_namespace: str,
    launcher_image: str | None,
    image_pull_secret: str,
    rerun_evicted: bool,
    leader_elect: bool,
    lease_duration: float,
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
    from kvnode.kube.errors import KubeError  # noqa: PLC0415
    from kvnode.kube.ratelimit import TokenBucket  # noqa: PLC0415

    log_to_stderr(verbose=verbose)
    settings = _settings(launcher_image, image_pull_secret, rerun_evicted=rerun_evicted)
    limiter = TokenBucket(client_qps, client_burst)
    try:
        configuration = cluster_of(kubeconfig)
        where = namespace or configuration.namespace
        lease = _lease(where, lease_duration, renew_deadline, retry_period) if leader_elect else None
        return asyncio.run(_run(configuration, settings, watch_namespace, lease, limiter))
    except KubeError as error:
        raise CliError(str(error)) from None


def _settings(launcher_image: str | None, image_pull_secret: str, *, rerun_evicted: bool) -> Settings:
    from kvnode.controller.ports import Settings  # noqa: PLC0415

    settings = Settings()
    launcher = replace(settings.launcher, image_pull_secret=image_pull_secret)
    if launcher_image:
        launcher = replace(launcher, launcher_image=launcher_image)
    return replace(settings, launcher=launcher, rerun_evicted=rerun_evicted)


def _lease(namespace: str, duration: float, renew_deadline: float, retry_period: float) -> LeaseSettings:
    """The Lease, under an identity that no other process has, on this machine neither."""
    from kvnode.kube.leader import LeaseSettings  # noqa: PLC0415

    identity = f"{os.uname().nodename}_{uuid.uuid4()}"
    try:
        return LeaseSettings(namespace, LEASE, identity, duration, renew_deadline, retry_period)
    except ValueError as error:
        raise click.BadParameter(str(error), param_hint="--leader-elect-lease-duration") from None


async def _run(
    configuration: Configuration,
    settings: Settings,
    watch_namespace: str,
    lease: LeaseSettings | None,
    limiter: TokenBucket,
) -> int:
    from kvnode.kube.client import Client  # noqa: PLC0415
    from kvnode.kube.leader import LeadershipLost  # noqa: PLC0415

    async with Client(configuration, user_agent=USER_AGENT, limiter=limiter) as client:
        try:
            return await until_told(_work(client, settings, watch_namespace, lease))
        except LeadershipLost as lost:
            raise CliError(f"{lost}: another may lead now", code=exitcodes.LEADERSHIP_LOST) from None


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
