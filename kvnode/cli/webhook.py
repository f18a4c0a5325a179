"""``kvnode webhook``: the admission webhooks of a cluster."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import TYPE_CHECKING

import click

from kvnode.cli.errors import CliError
from kvnode.cli.serving import cluster_of, kubeconfig_option, log_to_stderr, until_told, verbose_option

if TYPE_CHECKING:
    from kvnode.kube.config import Configuration
    from kvnode.webhook.run import Options


@click.command("webhook")
@kubeconfig_option
@click.option(
    "--namespace",
    envvar="POD_NAMESPACE",
    show_envvar=True,
    default="kvnode",
    show_default=True,
    metavar="NAME",
    help="Namespace of kvnode's own components.",
)
@click.option(
    "--name",
    "names",
    multiple=True,
    metavar="NAME",
    help="DNS name or address that the API server calls.  [default: kvnode-webhook.NAMESPACE.svc]",
)
@click.option(
    "--account",
    "accounts",
    multiple=True,
    metavar="[NAMESPACE/]NAME",
    help="Service account that writes the status of instances.  [default: kvnode-controller, kvnode-agent]",
)
@click.option(
    "--agent-account",
    default="kvnode-agent",
    show_default=True,
    metavar="[NAMESPACE/]NAME",
    help="The one of them that writes only instances of its own node.",
)
@click.option("--host", metavar="ADDRESS", help="Address to listen on.  [default: all]")
@click.option(
    "--port",
    type=click.IntRange(0, 65535),
    default=8443,
    show_default=True,
    help="Port to listen on; 0: any.",
)
@verbose_option
def command(
    *,
    kubeconfig: Path | None,
    namespace: str,
    names: tuple[str, ...],
    accounts: tuple[str, ...],
    agent_account: str,
    host: str | None,
    port: int,
    verbose: bool,
) -> int:
    """Answer the API server's questions about machines and instances.

    New ones get their defaults and are checked against KubeVirt's rules, changes against those on changes. The
    certificate is made, kept in a Secret and renewed by the command itself. deploy/webhook has the rest of
    what a cluster needs.

    \b
    Example:
      kvnode webhook --namespace kvnode
    """
    from kvnode.kube.errors import KubeError  # noqa: PLC0415
    from kvnode.webhook.certificates import CertificateError  # noqa: PLC0415
    from kvnode.webhook.run import Options  # noqa: PLC0415

    log_to_stderr(verbose=verbose)
    defaults = Options()
    options = Options(
        namespace=namespace,
        names=names,
        host=host or defaults.host,
        port=port,
        accounts=accounts or defaults.accounts,
        agent=agent_account,
    )
    try:
        return asyncio.run(_run(cluster_of(kubeconfig), options))
    except (KubeError, CertificateError, OSError) as error:
        raise CliError(getattr(error, "strerror", None) or str(error)) from None


async def _run(configuration: Configuration, options: Options) -> int:
    """Run until SIGTERM, and answer the questions under way."""
    from kvnode.kube.client import Client  # noqa: PLC0415
    from kvnode.webhook.run import Webhooks  # noqa: PLC0415

    async with Client(configuration, user_agent="kvnode-webhook") as client:
        return await until_told(Webhooks(client, options).run())
