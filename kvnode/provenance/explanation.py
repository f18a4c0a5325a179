"""Where each line of a domain comes from."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

import orjson

from kvnode.api.errors import ConversionError
from kvnode.api.quantity import Quantity
from kvnode.converter import Source as Input
from kvnode.converter.jsonbytes import json_bytes
from kvnode.provenance.document import Document, Keys, Node
from kvnode.provenance.probing import Prober, influences
from kvnode.provenance.ranking import ranked
from kvnode.provenance.tree import Element
from kvnode.provenance.unset import unset_influences

__all__ = ["MOST_VALUES", "Explanation", "Kind", "Line", "Source", "explain", "read_input"]

MOST_VALUES = 2500
"""Values that a VMI may have to be explained, and its context too: each is tried by conversions of the
whole."""

_MOST_UNSET = 3
"""Absent fields named for one line: those that do the least else."""

Kind: TypeAlias = Literal["spec", "default", "metadata", "status", "context", "unset", "constant"]
"""What a source is: written by the user; put there by defaulting; of the object's metadata; found out by the
cluster; what the node knows; a field or key that is absent, so that its default holds; nothing at all: every
domain has this."""


@dataclass(frozen=True, slots=True)
class Source:
    """One reason for a line."""

    kind: Kind
    path: str
    """The field (``spec.domain.cpu.cores``) or the key of the context (``context.smbios.family``); "" for a
    constant."""
    value: Any = None
    """What stands there, as in JSON; None where nothing does."""

    def to_dict(self) -> dict[str, Any]:
        """Ready for JSON."""
        return {"kind": self.kind, "path": self.path, "value": self.value}


@dataclass(frozen=True, slots=True)
class Line:
    """An element, an attribute or a text of the domain, and why it is there."""

    path: str
    """``devices/disk[1]``, ``devices/disk[1]/@type``, ``memory/text()``; the domain itself is ``.``. Indexes
    as in XPath."""
    value: str | None
    """Of an attribute or a text; None for an element."""
    sources: tuple[Source, ...]
    """Never empty; the most telling first."""
    inherited: bool
    """Whether the reasons are those of the element around it: no value of the input changes this line
    alone."""

    def to_dict(self) -> dict[str, Any]:
        """Ready for JSON."""
        sources = [source.to_dict() for source in self.sources]
        return {"path": self.path, "value": self.value, "inherited": self.inherited, "sources": sources}


@dataclass(frozen=True, slots=True)
class Explanation:
    """A domain with the reason for each of its lines."""

    xml: bytes
    """The domain, as `kvnode.convert` writes it."""
    lines: tuple[Line, ...]
    """In the order of the domain: an element, its attributes, its text, then what is inside."""

    def to_json(self) -> list[dict[str, Any]]:
        """The lines ready for JSON."""
        return [line.to_dict() for line in self.lines]

    def by_path(self) -> dict[str, Line]:
        """The lines by their paths."""
        return {line.path: line for line in self.lines}


def explain(
    vmi: Input, context: Mapping[str, Any] | None = None, *, written: Mapping[str, Any] | None = None
) -> Explanation:
    """Say for each element, attribute and text of the domain which field or context key put it there.

    The answer is found by converting: each value of the input is altered and left out in turn, and what that
    does to the domain is what the value is for. Then the absent fields of the API are tried for what no
    value explains.

    `vmi` and `context` are those of `kvnode.convert`. `written` is the instance as its author wrote it,
    before `kvnode.apply_defaults`: fields that are not in it count as ``default``; without it all count as
    ``spec``. The same input gives the same answer. A VMI of a hundred values takes about a tenth of a
    second, ten times that size about a hundred times as long.

    Raises:
        ConversionError: the VMI does not convert, or it or the context has more than `MOST_VALUES` values.
    """
    prober = Prober(read_input(vmi), read_input({} if context is None else context, "context"))
    found = influences(prober)
    lines = [path for element in prober.domain.walk() for path in (element.path, *dict(element.parts()))]
    puzzling = {path for path in lines if all(_is_weak(node) for node in found.get(path, ()))}
    for path, nodes in unset_influences(prober, puzzling).items():
        found.setdefault(path, []).extend(nodes)
    return Explanation(prober.xml, tuple(_Explainer(prober, found, written).lines(prober.domain)))


def read_input(source: Input, prefix: str = "") -> Document:
    """A VMI, or the context (`prefix` "context"), as a document.

    Raises:
        ConversionError: it is no JSON object, or has more than `MOST_VALUES` values.
    """
    if prefix and not isinstance(source, Mapping):
        raise ConversionError(prefix, f"must be a mapping, not {type(source).__name__}")
    what = prefix or "VMI"
    try:
        value = orjson.loads(json_bytes(source, what))
    except orjson.JSONDecodeError as error:
        raise ConversionError(prefix, f"the {what} is no JSON: {error}") from None
    if not isinstance(value, dict):
        raise ConversionError(
            prefix, "must be an object" if prefix else "must be an object: a VirtualMachineInstance"
        )
    return Document(value, prefix, MOST_VALUES)


def _is_weak(node: Node) -> bool:
    """The architecture changes a great deal and explains little."""
    return node.keys[-1:] == ("architecture",)


def _is_telling(sources: tuple[Source, ...]) -> bool:
    """Whether an element's reasons say enough for what is inside of it."""
    return (
        bool(sources)
        and sources[0].kind not in ("constant", "unset")
        and not sources[0].path.endswith("architecture")
    )


def _joined(one: tuple[Source, ...], other: tuple[Source, ...]) -> tuple[Source, ...]:
    known = {source.path for source in one}
    return (*one, *(source for source in other if source.path not in known))


def _outermost(nodes: list[Node]) -> list[Node]:
    """An absent object instead of what could be in it."""
    keys = {node.keys for node in nodes}
    return [node for node in nodes if not any(node.keys[:depth] in keys for depth in range(len(node.keys)))]


class _Explainer:
    """Turns influences into lines."""

    def __init__(
        self, prober: Prober, found: Mapping[str, list[Node]], written: Mapping[str, Any] | None
    ) -> None:
        self._found = found
        self._written = written
        self._context_nodes = {id(node) for node in prober.context.nodes}
        self._present = self._context_nodes | {id(node) for node in prober.vmi.nodes}
        self._reach: dict[int, int] = {}
        for nodes in found.values():
            for node in nodes:
                self._reach[id(node)] = self._reach.get(id(node), 0) + 1

    def lines(self, element: Element, above: tuple[Source, ...] = (), owner: Keys = ()) -> list[Line]:
        """The lines of an element and all below it; `above`: why the element around it is there, `owner`:
        what made it."""
        present, absent = self._reasons(element.path, None, owner)
        owner = present[0].keys if present else owner
        lines = [self._line(element.path or ".", None, present, absent, above)]
        above = lines[0].sources
        for path, value in element.parts():
            lines.append(self._line(path, value, *self._reasons(path, value, owner), above))
        for child in element.children:
            lines += self.lines(child, above, owner)
        return lines

    def _reasons(self, path: str, value: str | None, owner: Keys) -> tuple[list[Node], list[Node]]:
        """The values that a line hangs on, and the absent ones; the most telling first."""
        nodes = self._found.get(path, [])
        present = [node for node in nodes if id(node) in self._present]
        # the deepest alone: what is around a value takes the value along when it goes
        around = {(self._is_context(n), n.keys[:depth]) for n in present for depth in range(len(n.keys))}
        present = [node for node in present if (self._is_context(node), node.keys) not in around]
        strong = [node for node in present if not _is_weak(node)]
        weak = [node for node in present if _is_weak(node)]
        absent = sorted((n for n in nodes if id(n) not in self._present), key=lambda n: self._reach[id(n)])
        return [*ranked(strong, value, owner, self._reach), *weak], _outermost(absent)[:_MOST_UNSET]

    def _line(
        self, path: str, value: str | None, present: list[Node], absent: list[Node], above: tuple[Source, ...]
    ) -> Line:
        own = [node for node in present if not _is_weak(node)]
        weak = [node for node in present if _is_weak(node)]
        sources = tuple(self._source(node) for node in (*own, *absent, *weak))
        if own or (sources and not _is_telling(above)):
            return Line(path, value, sources, inherited=False)
        if not above or above[0].kind == "constant":
            return Line(path, value, (Source("constant", ""),), inherited=False)
        return Line(path, value, _joined(above, sources), inherited=True)

    def _is_context(self, node: Node) -> bool:
        return id(node) in self._context_nodes

    def _source(self, node: Node) -> Source:
        if id(node) not in self._present:
            return Source("unset", node.path)
        if self._is_context(node):
            return Source("context", node.path, node.value)
        if node.keys[0] == "metadata":
            return Source("metadata", node.path, node.value)
        if node.keys[0] == "status":
            return Source("status", node.path, node.value)
        return Source("spec" if self._is_written(node) else "default", node.path, node.value)

    def _is_written(self, node: Node) -> bool:
        if self._written is None:
            return True
        value: Any = self._written
        for key in node.keys:
            if isinstance(key, int) and isinstance(value, list) and key < len(value):
                value = value[key]
            elif isinstance(key, str) and isinstance(value, Mapping):
                value = value.get(key)
            else:
                return False
        return value is not None and (not node.is_leaf or _same(value, node.value))


def _same(written: Any, kept: Any) -> bool:
    """Whether a value is still what was written: an API server rewrites quantities, and nothing else."""
    if written == kept:
        return True
    try:
        return Quantity.from_json(written) == Quantity.from_json(kept)
    except (ValueError, TypeError):
        return False
