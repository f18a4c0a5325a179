"""``kvnode convert``: manifests to libvirt domain XML."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import click

from kvnode.cli import options, output, pure
from kvnode.cli.manifests import Manifest
from kvnode.cli.nodecontext import stand_in


@click.command("convert")
@options.files
@options.architecture
@options.cluster_config
@click.option(
    "--context",
    "context_file",
    metavar="FILE",
    help="What the node knows (CPUs, NUMA cells, block volumes …), as a mapping with the converter's keys.",
)
@options.raw
@options.indent
@options.form("xml", "json", "yaml", default="xml")
def command(
    *,
    files: tuple[str, ...],
    arch: str,
    config: str | None,
    context_file: str | None,
    raw: bool,
    indent: bool | None,
    form: str,
) -> None:
    """Turn manifests into libvirt domain XML.

    Each instance gets its defaults and is validated first, as in a cluster. The domain is the one that
    KubeVirt would define for it, with the paths of a launcher pod; nothing is read from this machine.

    \b
    Example:
      kvnode convert vm.yaml
      kubectl get vmi demo -o yaml | kvnode convert --raw -
    """
    settings = options.load_config(config)
    context = options.load_context(context_file)
    manifests = pure.read_and_tell(files)
    domains = [(m, _convert(m, arch, settings, context, raw)) for m in manifests]
    if form == "xml":
        for manifest, xml in domains:
            if len(domains) > 1:
                click.echo(f"<!-- {_comment(manifest)} -->")
            click.echo(output.pretty_xml(xml) if indent or (indent is None and output.is_terminal()) else xml)
        return
    described = [
        {"source": m.source, "namespace": m.namespace, "name": m.name, "xml": xml} for m, xml in domains
    ]
    output.emit(described, form)


def _convert(
    manifest: Manifest, arch: str, config: Mapping[str, Any] | None, context: Mapping[str, Any], raw: bool
) -> str:
    import kvnode  # noqa: PLC0415 - the native core

    vmi = manifest.vmi if raw else pure.admitted(manifest, arch, config)
    try:
        known = stand_in(vmi, arch, config)
    except (AttributeError, KeyError, TypeError):
        # Nobody checked this instance, and a field has another type than it should: the converter says which.
        known = {"architecture": arch, "kvmAvailable": True}
    try:
        return kvnode.convert(vmi, {**known, **context}).decode().rstrip("\n")
    except ValueError as error:
        raise pure.field_error(manifest, error) from None


def _comment(manifest: Manifest) -> str:
    """A line that may stand in an XML comment."""
    text = f"{manifest.source}: {manifest.namespace}/{manifest.name}"
    return "".join(c if c.isprintable() else "?" for c in text).replace("--", "- -")
