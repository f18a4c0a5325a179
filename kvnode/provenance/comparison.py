"""What a change of the instance changes in its domain, and which of that a running guest takes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, Literal, TypeAlias
from xml.sax.saxutils import escape, quoteattr

from kvnode.api.errors import ConversionError
from kvnode.converter import Source, convert
from kvnode.provenance.align import Delta, compare, identity
from kvnode.provenance.explanation import read_input
from kvnode.provenance.keep import kept
from kvnode.provenance.tree import Element, parse
from kvnode.provenance.units import Unit, units

__all__ = ["Change", "Comparison", "FieldChange", "diff"]

Action: TypeAlias = Literal["changed", "added", "removed"]

_Mark = tuple[object, ...]
"""What tells one difference between two domains from another."""


@dataclass(frozen=True, slots=True)
class Change:
    """One difference between two domains."""

    path: str
    """Of the element, attribute or text: in the running domain, in the wanted one for what is added to it."""
    action: Action
    old: str | None
    new: str | None
    """Values of an attribute or a text; an element that came or went as XML. None where it is not there."""
    live: bool
    """Whether the running guest takes it; if not, it needs a restart."""
    why: str
    fields: tuple[str, ...]
    """The fields of the instance that it comes from."""

    def to_dict(self) -> dict[str, Any]:
        """Ready for JSON."""
        return {
            "path": self.path,
            "action": self.action,
            "old": self.old,
            "new": self.new,
            "live": self.live,
            "why": self.why,
            "fields": list(self.fields),
        }


@dataclass(frozen=True, slots=True)
class FieldChange:
    """One difference between two instances: a field, a disk with its volume, an interface with its
    network."""

    fields: tuple[str, ...]
    old: Any
    new: Any
    """As in JSON; None where nothing stood or stands."""
    live: bool
    why: str
    in_domain: bool
    """Whether the domain differs for it."""

    def to_dict(self) -> dict[str, Any]:
        """Ready for JSON."""
        return {
            "fields": list(self.fields),
            "old": self.old,
            "new": self.new,
            "live": self.live,
            "why": self.why,
            "inDomain": self.in_domain,
        }


@dataclass(frozen=True, slots=True)
class Comparison:
    """Two instances compared. Empty, and false, where nothing differs."""

    changes: tuple[Change, ...]
    """Of the domain."""
    fields: tuple[FieldChange, ...]
    """Of the instance, those without an effect on the domain too."""

    def __bool__(self) -> bool:
        return bool(self.changes or self.fields)

    @property
    def needs_restart(self) -> bool:
        """Whether anything waits for a restart."""
        return not (all(change.live for change in self.changes) and all(field.live for field in self.fields))

    def to_json(self) -> dict[str, Any]:
        """Ready for JSON."""
        return {
            "needsRestart": self.needs_restart,
            "changes": [change.to_dict() for change in self.changes],
            "fields": [change.to_dict() for change in self.fields],
        }


def diff(
    running: Source,
    wanted: Source,
    context: Mapping[str, Any] | None = None,
    *,
    wanted_context: Mapping[str, Any] | None = None,
    written: Mapping[str, Any] | None = None,
    copies_volumes: bool = False,
) -> Comparison:
    """Compare the domains of a running instance and of a wanted one, and say what the running guest takes
    live.

    Both instances have their defaults. `context` is the node's (see `kvnode.convert`), `wanted_context` that
    of the wanted instance where it differs. `written` is the wanted instance as its author wrote it: what it
    leaves open and the running instance was given when it started (its UUID, the room for CPUs and memory,
    its status) is kept, as a cluster keeps it. `copies_volumes`: ``updateVolumesStrategy: Migration`` of the
    VirtualMachine.

    Which change comes from which field is found by converting the running instance with one change at a time.
    A live change counts on ``vmRolloutStrategy: LiveUpdate``, which is the default.

    Raises:
        ConversionError: one of the two does not convert, or has too many values.
    """
    old_value, new_value = _value(running), _value(wanted)
    if written is not None:
        new_value = kept(old_value, new_value, written)
    node = context or {}
    new_node = node if wanted_context is None else wanted_context
    old, new = parse(convert(old_value, node)), parse(convert(new_value, new_node))
    pieces = units(old_value, new_value, copies=copies_volumes)
    blame = _Blame(pieces, old_value, new_value, old, _merged(new_node, node))
    changes, used = [], set()
    for change, mark in _marked(compare(old, new)):
        behind = blame(mark)
        used.update(behind)
        changes.append(_judged(change, [pieces[index] for index in behind]))
    fields = [_field_change(piece, in_domain=index in used) for index, piece in enumerate(pieces)]
    return Comparison(tuple(changes), tuple(field for field in fields if field is not None))


class _Blame:
    """Which pieces of the difference between two instances are behind a difference between their domains."""

    def __init__(
        self,
        pieces: list[Unit],
        running: dict[str, Any],
        wanted: dict[str, Any],
        old: Element,
        node: dict[str, Any],
    ) -> None:
        self._alone = [_marks(old, piece.apply(running, wanted), node) for piece in pieces]
        self._others = [_marks(old, piece.apply(wanted, running), node) for piece in pieces]

    def __call__(self, mark: _Mark) -> list[int]:
        """Those that make the difference alone; else those without which it is not there; else all."""
        alone = [index for index, marks in enumerate(self._alone) if marks and mark in marks]
        needed = [
            index for index, marks in enumerate(self._others) if marks is not None and mark not in marks
        ]
        return alone or needed or list(range(len(self._alone)))


def _marks(old: Element, instance: dict[str, Any], node: Mapping[str, Any]) -> set[_Mark] | None:
    """The differences that an instance's domain has from the old one; None when it does not convert."""
    try:
        new = parse(convert(instance, node))
    except ConversionError:
        return None
    return {mark for _, mark in _marked(compare(old, new))}


def _marked(delta: Delta) -> Iterator[tuple[Change, _Mark]]:
    """The differences between two domains, not judged yet."""
    for path, (before, after) in delta.changed.items():
        yield _change(path, "changed", before, after), (path,)
    for path, value in delta.gone.items():
        yield _change(path, "removed", value, None), (path,)
    for path, value in delta.come.items():
        yield _change(path, "added", None, value), (path,)
    for element in delta.removed:
        yield _change(element.path, "removed", _xml(element), None), ("removed", element.path)
    for element in delta.added:
        parent = element.path.rpartition("/")[0]
        yield (
            _change(element.path, "added", None, _xml(element)),
            ("added", parent, element.tag, identity(element)),
        )


def _change(path: str, action: Action, old: str | None, new: str | None) -> Change:
    return Change(path, action, old, new, live=False, why="", fields=())


def _judged(change: Change, pieces: list[Unit]) -> Change:
    if not pieces:
        return replace(change, why="the node is another: what it knows differs")
    verdict = next((piece.verdict for piece in pieces if not piece.verdict.live), pieces[0].verdict)
    fields = tuple(field for piece in pieces for field in piece.fields)
    return replace(change, live=verdict.live, why=verdict.why, fields=fields)


def _field_change(piece: Unit, *, in_domain: bool) -> FieldChange | None:
    """The piece for the report; what a cluster writes by itself is in it only where it matters."""
    field = piece.fields[0]
    if not in_domain and field.startswith("status"):
        return None
    if not in_domain and field.startswith("metadata"):
        return FieldChange(piece.fields, piece.old, piece.new, True, "is not part of the domain", in_domain)
    return FieldChange(piece.fields, piece.old, piece.new, piece.verdict.live, piece.verdict.why, in_domain)


def _value(source: Source) -> dict[str, Any]:
    value: dict[str, Any] = read_input(source).nodes[0].value
    return value


def _merged(one: Mapping[str, Any], other: Mapping[str, Any]) -> dict[str, Any]:
    """Both contexts; the other's values win, and maps by name hold the names of both."""
    made = {**one, **other}
    for key, value in one.items():
        inner = other.get(key)
        if isinstance(value, Mapping) and isinstance(inner, Mapping):
            made[key] = {**value, **inner}
    return made


def _xml(element: Element) -> str:
    attributes = "".join(f" {name}={quoteattr(value)}" for name, value in element.attributes.items())
    content = escape(element.text) + "".join(_xml(child) for child in element.children)
    return (
        f"<{element.tag}{attributes}>{content}</{element.tag}>"
        if content
        else f"<{element.tag}{attributes}/>"
    )
