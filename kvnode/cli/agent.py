"""``kvnode agent``: a node's agent in a Kubernetes cluster."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import TYPE_CHECKING

import click

from kvnode.cli.errors import CliError
from kvnode.cli.serving import cluster_of, kubeconfig_option, log_to_stderr, until_told, verbose_option

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
@kubeconfig_option
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
@verbose_option
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
        return asyncio.run(_run(cluster_of(kubeconfig), settings))
    except (KubeError, OSError) as error:
        raise CliError(str(error)) from None


async def _run(configuration: Configuration, settings: Settings) -> int:
    from kvnode.agent.main import Agent  # noqa: PLC0415
    from kvnode.kube.client import Client  # noqa: PLC0415
    from kvnode.kube.ratelimit import TokenBucket  # noqa: PLC0415

    limiter = TokenBucket(50.0, 100, asyncio.get_running_loop().time)
    async with Client(configuration, user_agent="kvnode-agent", limiter=limiter) as client:
        return await until_told(Agent(client, settings).run())
