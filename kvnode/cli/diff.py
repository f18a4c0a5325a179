"""``kvnode diff``: what a changed manifest changes in the domain, and what of that a running guest takes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import click

from kvnode.cli import exitcodes, options, output, pure
from kvnode.cli.errors import CliError, one_line
from kvnode.cli.explain import node_context, shown_path
from kvnode.cli.manifests import Manifest

if TYPE_CHECKING:
    from kvnode.provenance.comparison import Change, Comparison

SIGNS = {"added": "+", "removed": "-", "changed": "~"}
WIDEST = 60
"""Characters of a value written; `-o json` has all of it."""

Pair = tuple[Manifest, Manifest]


@click.command("diff")
@click.argument("running", metavar="RUNNING")
@click.argument("wanted", metavar="WANTED")
@options.architecture
@options.cluster_config
@click.option(
    "--context", "context_file", metavar="FILE", help="What the node knows, as for `kvnode convert`."
)
@options.raw
@click.option(
    "--exit-code", is_flag=True, help="Exit with 1 when something differs, as `git diff --exit-code` does."
)
@options.form("text", "json", "yaml", default="text")
def command(
    *,
    running: str,
    wanted: str,
    arch: str,
    config: str | None,
    context_file: str | None,
    raw: bool,
    exit_code: bool,
    form: str,
) -> int:
    """Compare the domains of two manifests: RUNNING, as the guest was started, and WANTED.

    For each change of the domain: whether the running guest takes it live or needs a restart, why, and the
    field that it comes from. Changes of the manifest that leave the domain as it is come last. Files with
    several machines are compared machine by machine.

    \b
    Example:
      kvnode diff vm.yaml vm-new.yaml
      kubectl get vmi demo -o yaml | kvnode diff --raw - vm-new.yaml
      kvnode diff old.yaml new.yaml -o json | jq '.[].needsRestart'
    """
    settings = options.load_config(config)
    context = options.load_context(context_file)
    compared = [(pair, _compare(pair, arch, settings, context, raw)) for pair in _pairs(running, wanted)]
    if form == "text":
        for pair, comparison in compared:
            _print(pair, comparison)
    else:
        output.emit([_described(pair, comparison) for pair, comparison in compared], form)
    return exitcodes.FAILED if exit_code and any(comparison for _, comparison in compared) else exitcodes.OK


def _pairs(running: str, wanted: str) -> list[Pair]:
    """The machines to compare: the only one of either file, else those of one name."""
    if running == wanted == "-":
        raise CliError("standard input (-) can be read only once", code=exitcodes.USAGE)
    old, new = pure.read_and_tell((running,)), pure.read_and_tell((wanted,))
    if len(old) == len(new) == 1:
        return [(old[0], new[0])]
    by_name = {(manifest.namespace, manifest.name): manifest for manifest in old}
    pairs = []
    for manifest in new:
        partner = by_name.pop((manifest.namespace, manifest.name), None)
        if partner is None:
            raise manifest.error(f"no machine of this name is in {running}", "metadata.name")
        pairs.append((partner, manifest))
    for manifest in by_name.values():
        raise manifest.error(f"no machine of this name is in {wanted}", "metadata.name")
    return pairs


def _compare(
    pair: Pair, arch: str, config: Mapping[str, Any] | None, context: Mapping[str, Any], raw: bool
) -> Comparison:
    import kvnode  # noqa: PLC0415 - the native core

    old, new = pair
    running = old.vmi if raw else pure.admitted(old, arch, config)
    wanted = pure.admitted(new, arch, config)
    spec = new.document.get("spec")
    strategy = spec.get("updateVolumesStrategy") if isinstance(spec, Mapping) else None
    try:
        return kvnode.diff(
            running,
            wanted,
            node_context(running, arch, config, context),
            wanted_context=node_context(wanted, arch, config, context),
            written=new.vmi,
            copies_volumes=strategy == "Migration",
        )
    except ValueError as error:
        raise pure.field_error(new, error) from None


def _described(pair: Pair, comparison: Comparison) -> dict[str, Any]:
    described = comparison.to_json()
    for change in (*described["changes"], *described["fields"]):
        change["fields"] = [shown_path(pair[1], field) for field in change["fields"]]
    running, wanted = pair
    return {
        "running": running.source,
        "wanted": wanted.source,
        "namespace": wanted.namespace,
        "name": wanted.name,
        **described,
    }


def _print(pair: Pair, comparison: Comparison) -> None:
    running, wanted = pair
    click.echo(one_line(f"{wanted.namespace}/{wanted.name}: {running.source} -> {wanted.source}"))
    if not comparison:
        click.echo("Nothing differs.")
        return
    groups: dict[tuple[bool, str], list[Change]] = {}
    for change in comparison.changes:
        groups.setdefault((change.live, _why(wanted, change.why, change.fields)), []).append(change)
    for field in comparison.fields:
        if not field.in_domain:
            groups[field.live, _why(wanted, field.why, field.fields)] = []
    for (live, why), changes in groups.items():
        click.echo(f"{click.style('live   ' if live else 'restart', fg='green' if live else 'red')}  {why}")
        width = max((len(change.path) for change in changes), default=0)
        for change in changes:
            click.echo(f"           {_line(change, width)}".rstrip())
    click.echo(_verdict(comparison))


def _line(change: Change, width: int) -> str:
    values = [_short(value) for value in (change.old, change.new) if value is not None]
    return f"{SIGNS[change.action]} {one_line(change.path).ljust(width)}  {' -> '.join(values)}"


def _why(manifest: Manifest, why: str, fields: tuple[str, ...]) -> str:
    named = ", ".join(shown_path(manifest, field) for field in fields[:2])
    more = f" (+{len(fields) - 2})" if len(fields) > 2 else ""
    return one_line(f"{named}{more}: {why}" if named else why)


def _short(value: str) -> str:
    text = one_line(value)
    return text if len(text) <= WIDEST else text[: WIDEST - 1] + "…"


def _verdict(comparison: Comparison) -> str:
    if not comparison.needs_restart:
        return "The running guest takes all of it."
    # pkg/virt-controller/watch/vm/vm.go:3351
    return "A restart is needed, and changes of CPUs and memory wait for it too."
