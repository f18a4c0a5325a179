"""``kvnode pod``: manifests to the pods that their launchers run in."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import click
from click.core import ParameterSource

from kvnode.cli import options, output, pure
from kvnode.cli.errors import one_line
from kvnode.cli.manifests import Manifest

if TYPE_CHECKING:
    from kvnode.spec.pod import LauncherSettings, MemoryAccount, Surroundings


@click.command("pod")
@options.files
@options.architecture
@options.cluster_config
@click.option(
    "--image", "image", metavar="IMAGE", help="The launcher's image.  [default: kubevirt/virt-launcher]"
)
@click.option(
    "--block",
    "blocks",
    multiple=True,
    metavar="CLAIM",
    help="A PersistentVolumeClaim that is a block device; all others are file systems.",
)
@click.option(
    "--guest-page-tables",
    is_flag=True,
    help="Request memory for the guest's page tables, which KubeVirt does not where only memory.guest is set.",
)
@click.option("--explain", is_flag=True, help="Show the pod's memory term by term instead of the pod.")
@options.raw
@options.form("yaml", "json", default="yaml")
def command(
    *,
    files: tuple[str, ...],
    arch: str,
    config: str | None,
    image: str | None,
    blocks: tuple[str, ...],
    guest_page_tables: bool,
    explain: bool,
    raw: bool,
    form: str,
) -> None:
    """Render the pods that machines run in.

    Each instance gets its defaults and is validated first, as in a cluster. The pod is the one that KubeVirt
    would create for it; what only a cluster knows (UIDs, quotas, the claims' kinds) is left out or taken to be
    ordinary.

    \b
    Example:
      kvnode pod vm.yaml
      kvnode pod --explain vm.yaml
    """
    from kvnode.spec.pod import LauncherSettings  # noqa: PLC0415 - only where a pod is rendered

    settings = LauncherSettings(network_annotations=True, guest_page_tables=guest_page_tables)
    if image is not None:
        settings = replace(settings, launcher_image=image)
    configuration = options.load_config(config)
    manifests = pure.read_and_tell(files)
    instances = [(m, _instance(m, arch, configuration, raw)) for m in manifests]
    pvcs = _claims(instances, blocks)
    if explain:
        asked = click.get_current_context().get_parameter_source("form")
        accounts = [(m, _account(m, vmi, arch, configuration, settings)) for m, vmi in instances]
        _print_accounts(accounts, "text" if asked is ParameterSource.DEFAULT else form)
        return
    pods = [_pod(m, vmi, arch, configuration, settings=settings, pvcs=pvcs) for m, vmi in instances]
    if form == "yaml":
        click.echo(output.to_yaml(pods))
    elif len(pods) == 1:
        click.echo(output.to_json(pods[0]))
    else:
        click.echo(output.to_json({"apiVersion": "v1", "kind": "List", "items": pods}))


def _instance(manifest: Manifest, arch: str, config: Mapping[str, Any] | None, raw: bool) -> dict[str, Any]:
    """The instance as a cluster stores it, in a namespace."""
    if not raw:
        return pure.admitted(manifest, arch, config)
    metadata = manifest.vmi.get("metadata") or {}
    namespace = metadata.get("namespace") or "default"
    return {**manifest.vmi, "metadata": {**metadata, "namespace": namespace}}


def _claims(
    instances: list[tuple[Manifest, dict[str, Any]]], blocks: tuple[str, ...]
) -> dict[str, bool] | None:
    """Every claim that is used, and whether it is a block device."""
    from kvnode.spec.pod import claim_names  # noqa: PLC0415

    if not blocks:
        return None
    used: list[str] = []
    for manifest, vmi in instances:
        try:
            used += claim_names(vmi)
        except ValueError as error:
            raise pure.field_error(manifest, error) from None
    for name in blocks:
        if name not in used:
            raise click.BadParameter(f"no volume lies on a claim {name!r}", param_hint="--block")
    return {name: name in blocks for name in used}


def _pod(
    manifest: Manifest,
    vmi: dict[str, Any],
    arch: str,
    config: Mapping[str, Any] | None,
    *,
    settings: LauncherSettings,
    pvcs: dict[str, bool] | None,
) -> dict[str, Any]:
    from kvnode.spec.pod import render_launcher_pod  # noqa: PLC0415

    surroundings = _surroundings(manifest)
    try:
        pod = render_launcher_pod(vmi, arch, config, pvcs, settings=settings, surroundings=surroundings)
    except ValueError as error:
        raise pure.field_error(manifest, error) from None
    namespace = {"namespace": vmi["metadata"]["namespace"]}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {**namespace, **pod["metadata"]},
        "spec": pod["spec"],
    }


def _account(
    manifest: Manifest,
    vmi: dict[str, Any],
    arch: str,
    config: Mapping[str, Any] | None,
    settings: LauncherSettings,
) -> MemoryAccount:
    from kvnode.spec.pod import explain_memory  # noqa: PLC0415

    try:
        return explain_memory(vmi, arch, config, settings=settings, surroundings=_surroundings(manifest))
    except ValueError as error:
        raise pure.field_error(manifest, error) from None


def _surroundings(manifest: Manifest) -> Surroundings:
    """A claim for state as it would be named in a cluster, where a random part follows."""
    from kvnode.spec.pod import Surroundings  # noqa: PLC0415

    return Surroundings(backend_storage_claim=f"persistent-state-for-{manifest.name}")


def _print_accounts(accounts: list[tuple[Manifest, MemoryAccount]], form: str) -> None:
    if form != "text":
        output.emit([_described(manifest, account) for manifest, account in accounts], form)
        return
    for manifest, account in accounts:
        amounts = [f"requests {_amount(account.request)}"]
        amounts += [f"{_amount(size)} of {name}" for name, size in account.hugepages.items()]
        amounts += [] if account.limit is None else [f"limited to {_amount(account.limit)}"]
        click.echo(one_line(f"{manifest.source}: {manifest.name}: the pod {', '.join(amounts)}"))
        rows = [(t.name, output.size(t.bytes), t.reason, manifest.path(t.field)) for t in account.terms]
        output.table(("TERM", "SIZE", "WHY", "FIELD"), rows, right=frozenset(["SIZE"]))
        for warning in account.warnings:
            line = manifest.error(warning.message, warning.field).line()
            click.echo(f"kvnode: warning: {line}", err=True)


def _amount(size: int) -> str:
    return f"{output.size(size)} ({size} bytes)"


def _described(manifest: Manifest, account: MemoryAccount) -> dict[str, Any]:
    return {
        "source": manifest.source,
        "namespace": manifest.namespace,
        "name": manifest.name,
        "request": account.request,
        "limit": account.limit,
        "hugepages": dict(account.hugepages),
        "terms": [
            {"name": t.name, "bytes": t.bytes, "reason": t.reason, "field": manifest.path(t.field)}
            for t in account.terms
        ],
        "warnings": [{"field": manifest.path(w.field), "message": w.message} for w in account.warnings],
    }
