"""``kvnode overhead``: the memory that a machine's pod needs on top of its guest's."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import click

from kvnode.cli import options, output, pure
from kvnode.cli.errors import one_line
from kvnode.cli.manifests import Manifest

if TYPE_CHECKING:
    from kvnode.spec.overhead import Term

_DECIMAL = re.compile(r"[0-9]{1,9}(\.[0-9]{0,18})?")


def _factor(_ctx: click.Context, _parameter: click.Parameter, text: str | None) -> str | None:
    """The ratio, refused where the cluster's own setting would be passed over."""
    if text is not None and not _DECIMAL.fullmatch(text):
        raise click.BadParameter(f"{text!r} must be a number such as 1.5")
    return text


@click.command("overhead")
@options.files
@options.architecture
@options.cluster_config
@click.option(
    "--ratio", metavar="FACTOR", callback=_factor, help="additionalGuestMemoryOverheadRatio, such as 1.5."
)
@click.option("--explain", is_flag=True, help="Show each term of the sum.")
@options.raw
@options.form("text", "json", "yaml", default="text")
def command(
    *,
    files: tuple[str, ...],
    arch: str,
    config: str | None,
    ratio: str | None,
    explain: bool,
    raw: bool,
    form: str,
) -> None:
    """Compute how much memory a machine's pod requests on top of its guest's.

    \b
    Example:
      kvnode overhead vm.yaml
      kvnode overhead --explain vm.yaml
    """
    import kvnode  # noqa: PLC0415

    settings = options.load_config(config)
    found: list[tuple[Manifest, list[Term]]] = []
    for manifest in pure.read_and_tell(files):
        vmi = manifest.vmi if raw else pure.defaulted(manifest, arch, settings)
        try:
            found.append((manifest, kvnode.memory_overhead_terms(vmi, arch, ratio, settings)))
        except ValueError as error:
            raise pure.field_error(manifest, error) from None
    if form != "text":
        output.emit([_described(manifest, terms) for manifest, terms in found], form)
        return
    for manifest, terms in found:
        total = sum(term.bytes for term in terms)
        click.echo(
            f"{one_line(manifest.source)}: {one_line(manifest.name)}: {output.size(total)} ({total} bytes)"
        )
        if explain:
            rows = [(t.name, output.size(t.bytes), t.reason, manifest.path(t.field)) for t in terms]
            output.table(("TERM", "SIZE", "WHY", "FIELD"), rows, right=frozenset(["SIZE"]))


def _described(manifest: Manifest, terms: list[Term]) -> dict[str, Any]:
    return {
        "source": manifest.source,
        "namespace": manifest.namespace,
        "name": manifest.name,
        "bytes": sum(term.bytes for term in terms),
        "terms": [
            {"name": t.name, "bytes": t.bytes, "reason": t.reason, "field": manifest.path(t.field)}
            for t in terms
        ],
    }
