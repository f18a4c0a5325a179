"""``kvnode agent``: a node's agent in a Kubernetes cluster."""

from __future__ import annotations

import asyncio
import signal
from pathlib import Path
from typing import TYPE_CHECKING

import click

from kvnode.cli import exitcodes
from kvnode.cli.errors import CliError

if TYPE_CHECKING:
    from kvnode.agent.settings import Settings
    from kvnode.kube.config import Configuration

_FOLDER = click.Path(path_type=Path, file_okay=False)


@click.command("agent")
@click.option(
    "--node-name",
    envvar="NODE_NAME",
    show_envvar=True,
    required=True,
    metavar="NAME",
    help="The node that this is, by Kubernetes' name.",
)
@click.option(
    "--kubeconfig",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="How to reach the API server.  [default: the pod's service account, else $KUBECONFIG]",
)
@click.option("--pods", type=_FOLDER, default="/pods", show_default=True, help="kubelet's folder of pods.")
@click.option(
    "--private",
    type=_FOLDER,
    default="/var/run/kubevirt-private",
    show_default=True,
    help="Folder of the node for records that outlive the agent.",
)
@click.option(
    "--capabilities",
    type=_FOLDER,
    default="/var/lib/kubevirt-node-labeller",
    show_default=True,
    help="Folder of what libvirt said of the node.",
)
@click.option(
    "--device-plugins",
    type=_FOLDER,
    default="/var/lib/kubelet/device-plugins",
    show_default=True,
    help="kubelet's folder of device plugins.",
)
@click.option("--host", default="0.0.0.0", show_default=True, metavar="ADDRESS", help="Address to listen on.")  # noqa: S104
@click.option(
    "--port",
    type=click.IntRange(0, 65535),
    default=8185,
    show_default=True,
    help="Port of metrics, health and the page; 0: any.",
)
@click.option("-v", "--verbose", is_flag=True, help="Log more.")
def command(
    *,
    node_name: str,
    kubeconfig: Path | None,
    pods: Path,
    private: Path,
    capabilities: Path,
    device_plugins: Path,
    host: str,
    port: int,
    verbose: bool,
) -> int:
    """Look after the virtual machines of a node, in the place of KubeVirt's virt-handler.

    It must be root and see the processes of the node (hostPID). On SIGTERM it ends and leaves its machines
    running; the next one finds them again.

    \b
    Example:
      NODE_NAME=node01 kvnode agent
    """
    from kvnode.agent.settings import Settings  # noqa: PLC0415 - only where there is a cluster
    from kvnode.cli.controller import log_to_stderr  # noqa: PLC0415
    from kvnode.kube.config import discover  # noqa: PLC0415
    from kvnode.kube.errors import KubeError  # noqa: PLC0415

    log_to_stderr(verbose=verbose)
    settings = Settings(
        node=node_name,
        pods=pods,
        private=private,
        capabilities=capabilities,
        device_plugins=device_plugins,
        address=host,
        port=port,
    )
    try:
        return asyncio.run(_until_told(discover(kubeconfig), settings))
    except* (KubeError, OSError) as group:
        first = _first(group)
        raise CliError(str(first)) from None


def _first(group: BaseExceptionGroup[Exception]) -> Exception:
    """The first of the failures that is no group itself."""
    first: Exception | BaseExceptionGroup[Exception] = group
    while isinstance(first, BaseExceptionGroup):
        first = first.exceptions[0]
    return first


async def _until_told(configuration: Configuration, settings: Settings) -> int:
    """Run until SIGTERM; gives the exit code."""
    from kvnode.agent.main import Agent  # noqa: PLC0415
    from kvnode.kube.client import Client  # noqa: PLC0415
    from kvnode.kube.ratelimit import TokenBucket  # noqa: PLC0415

    clock = asyncio.get_running_loop().time
    limiter = TokenBucket(50.0, 100, clock)
    async with Client(configuration, user_agent="kvnode-agent", limiter=limiter) as client:
        work = asyncio.ensure_future(Agent(client, settings).run())
        asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, work.cancel)
        try:
            await work
        except asyncio.CancelledError:
            if (task := asyncio.current_task()) is not None and task.cancelling():
                raise  # Ctrl-C
    return exitcodes.OK
