"""``kvnode explain``: the domain line by line, and beside each line the field that put it there."""

from __future__ import annotations

import html
import json
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

import click

from kvnode.cli import options, output, pure
from kvnode.cli.errors import one_line
from kvnode.cli.manifests import Manifest
from kvnode.cli.nodecontext import stand_in

if TYPE_CHECKING:
    from kvnode.provenance.explanation import Explanation, Line, Source
    from kvnode.provenance.tree import Element

COLUMN = 76
"""Where reasons begin at the latest; a longer line pushes its own reason out."""

SHOWN = 2
"""Reasons written beside a line; `-o json` has them all."""

STYLES = {"spec": "green", "default": "yellow", "unset": "magenta", "context": "cyan", "constant": "dim"}
"""Colours of reasons by kind; the others are blue."""

Sources = tuple["Source", ...]
Row = tuple[str, Sources]


@click.command("explain")
@options.files
@options.architecture
@options.cluster_config
@click.option(
    "--context", "context_file", metavar="FILE", help="What the node knows, as for `kvnode convert`."
)
@click.option(
    "--path",
    "paths",
    metavar="GLOB",
    multiple=True,
    help="Only these lines, such as 'devices/disk[1]' or '**/@cache'; may be given again.",
)
@options.raw
@options.form("text", "json", "yaml", default="text")
def command(
    *,
    files: tuple[str, ...],
    arch: str,
    config: str | None,
    context_file: str | None,
    paths: tuple[str, ...],
    raw: bool,
    form: str,
) -> None:
    """Say for each line of the domain which field of the manifest put it there, or which default, or the
    node.

    The answer is taken from the conversion itself: every value is altered in turn, and what that changes in
    the domain is what the value is for.

    \b
    Example:
      kvnode explain vm.yaml
      kvnode explain vm.yaml --path devices/disk --path 'cpu/**'
      kvnode explain vm.yaml -o json | jq '.[].lines[] | select(.sources[0].kind == "default")'
    """
    settings = options.load_config(config)
    context = options.load_context(context_file)
    explained = []
    for manifest in pure.read_and_tell(files):
        vmi = manifest.vmi if raw else pure.admitted(manifest, arch, settings)
        explained.append((manifest, _explain(manifest, vmi, node_context(vmi, arch, settings, context), raw)))
    if form == "text":
        for manifest, explanation in explained:
            if len(explained) > 1:
                click.echo(
                    f"# {one_line(manifest.source)}: {one_line(manifest.namespace)}/{one_line(manifest.name)}"
                )
            _print(manifest, explanation, paths)
        return
    output.emit([_described(manifest, explanation, paths) for manifest, explanation in explained], form)


def node_context(
    vmi: dict[str, Any], arch: str, config: Mapping[str, Any] | None, context: Mapping[str, Any]
) -> dict[str, Any]:
    """The converter's context: what was given, and for the rest that of a node that has what the instance
    needs."""
    try:
        known = stand_in(vmi, arch, config)
    except (AttributeError, KeyError, TypeError):
        # Nobody checked this instance, and its fields have other types than they should: the converter says which.
        known = {"architecture": arch, "kvmAvailable": True}
    return {**known, **context}


def shown_path(manifest: Manifest, path: str) -> str:
    """A field of the instance as the manifest has it; a machine's name is its own, not its template's."""
    return path if path in ("metadata.name", "metadata.namespace") else manifest.path(path)


def _explain(manifest: Manifest, vmi: dict[str, Any], context: Mapping[str, Any], raw: bool) -> Explanation:
    import kvnode  # noqa: PLC0415 - the native core

    try:
        return kvnode.explain(vmi, context, written=None if raw else manifest.vmi)
    except ValueError as error:
        raise pure.field_error(manifest, error) from None


def _chosen(explanation: Explanation, paths: tuple[str, ...]) -> list[Line]:
    from kvnode.provenance.selection import path_matcher  # noqa: PLC0415

    matchers = [path_matcher(path) for path in paths]
    return [
        line for line in explanation.lines if not matchers or any(matches(line.path) for matches in matchers)
    ]


def _described(manifest: Manifest, explanation: Explanation, paths: tuple[str, ...]) -> dict[str, Any]:
    lines = [line.to_dict() for line in _chosen(explanation, paths)]
    for line in lines:
        for source in line["sources"]:
            source["path"] = shown_path(manifest, source["path"])
    return {"source": manifest.source, "namespace": manifest.namespace, "name": manifest.name, "lines": lines}


def _print(manifest: Manifest, explanation: Explanation, paths: tuple[str, ...]) -> None:
    if paths:
        lines = _chosen(explanation, paths)
        rows = [
            (line.path if line.value is None else f"{line.path} = {line.value}", line.sources)
            for line in lines
        ]
    else:
        from kvnode.provenance.tree import parse  # noqa: PLC0415

        rows = list(_rows(parse(explanation.xml), explanation.by_path(), 0))
    column = min(max((len(left) for left, _ in rows), default=0), COLUMN) + 2
    show = _printer()
    for left, sources in rows:
        show(
            one_line_kept(left).ljust(column - 2) + "  ",
            _reason(manifest, sources),
            sources[0].kind if sources else "",
        )


def one_line_kept(text: str) -> str:
    """The text with control characters escaped; its leading blanks stay."""
    return text[: len(text) - len(text.lstrip(" "))] + one_line(text)


def _rows(element: Element, lines: Mapping[str, Line], depth: int) -> Iterator[Row]:
    """The element as rows: a new one wherever another reason begins."""
    pad = "  " * depth
    # The element's own reason gives way to a more exact one of its first attribute or text.
    general = _news(lines[element.path or "."])
    rows: list[Row] = [(f"{pad}<{element.tag}", general)]
    for name, value in element.attributes.items():
        sources = _news(lines[element.part(f"@{name}")])
        rows = _with(
            rows, f' {name}="{html.escape(value)}"', sources, f"{pad} {' ' * len(element.tag)}", general
        )
    if element.children:
        yield from _ended(rows, ">")
        for child in element.children:
            yield from _rows(child, lines, depth + 1)
        yield f"{pad}</{element.tag}>", ()
    elif element.text:
        sources = _news(lines[element.part("text()")])
        text = f"{html.escape(element.text, quote=False)}</{element.tag}>"
        yield from _with(list(_ended(rows, ">")), text, sources, f"{pad}  ", general)
    else:
        yield from _ended(rows, "/>")


def _news(line: Line) -> tuple[Source, ...]:
    """The reasons of a line, if it has any of its own."""
    return () if line.inherited else line.sources


def _with(rows: list[Row], text: str, sources: Sources, pad: str, general: Sources) -> list[Row]:
    """The rows with more text: in the last row, unless it has another reason. `general`: the whole
    element's."""
    before, known = rows[-1]
    if not sources or sources[0].kind == "constant" or (known and known[0].path == sources[0].path):
        return [*rows[:-1], (before + text, known or sources)]
    if not known or known[0].kind == "constant" or (known is general and _is_inside(sources[0], general[0])):
        return [*rows[:-1], (before + text, sources)]
    return [*rows, (pad + text, sources)]


def _is_inside(one: Source, other: Source) -> bool:
    return one.path.startswith((f"{other.path}.", f"{other.path}["))


def _ended(rows: list[Row], end: str) -> Iterator[Row]:
    yield from rows[:-1]
    yield rows[-1][0] + end, rows[-1][1]


def _reason(manifest: Manifest, sources: tuple[Source, ...]) -> str:
    telling = [source for source in sources if not source.path.endswith("architecture")] or sources
    words = [_phrase(manifest, source) for source in telling[:SHOWN]]
    more = f" (+{len(telling) - SHOWN})" if len(telling) > SHOWN else ""
    return ", ".join(words) + more


def _phrase(manifest: Manifest, source: Source) -> str:
    if source.kind == "constant":
        return "always"
    path = one_line(shown_path(manifest, source.path))
    if source.kind == "unset":
        return f"{path} is not set"
    value = ""
    if not isinstance(source.value, (dict, list)):
        text = (
            json.dumps(source.value, ensure_ascii=False)
            if not isinstance(source.value, str)
            else source.value
        )
        value = f" = {one_line(text) if len(text) <= 40 else one_line(text[:39]) + '…'}"
    return f"{path}{value}{' (default)' if source.kind == 'default' else ''}"


def _printer() -> Any:
    if not output.is_terminal():
        return lambda left, right, _kind: click.echo(f"{left}{right}".rstrip())
    from rich.console import Console  # noqa: PLC0415
    from rich.text import Text  # noqa: PLC0415

    console = Console(soft_wrap=True, highlight=False)

    def show(left: str, right: str, kind: str) -> None:
        console.print(Text(left) + Text(right, style=STYLES.get(kind, "blue")))

    return show
