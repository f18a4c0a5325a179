"""What two domains have in common: siblings are matched by what they are, not by where they stand."""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Callable, Hashable
from dataclasses import dataclass, field

from kvnode.provenance.tree import Element

__all__ = ["Delta", "compare", "compare_siblings", "identity"]

_Pairs = list[tuple[Element, Element]]
_IDENTITY = ("name", "id", "type", "index", "vcpu", "iothread")


@dataclass(slots=True)
class Delta:
    """The differences between an old domain and a new one, by path: the old one's where there is an old
    side."""

    changed: dict[str, tuple[str, str]] = field(default_factory=dict)
    """Attributes and texts that both have: the old and the new value."""
    gone: dict[str, str] = field(default_factory=dict)
    """Attributes and texts of a kept element that the new domain lacks: the old value."""
    come: dict[str, str] = field(default_factory=dict)
    """Attributes and texts of a kept element that the old domain lacks: the new value. Paths of the old
    element."""
    removed: list[Element] = field(default_factory=list)
    """Elements that are gone, with all below them."""
    added: list[Element] = field(default_factory=list)
    """Elements that are new, with all below them; paths of the new domain."""

    def lost(self) -> set[str]:
        """Every path of the old domain that changed or is gone; what is below a removed element counts with
        it."""
        return {*self.changed, *self.gone, *(element.path for element in self.removed)}


def compare(old: Element, new: Element) -> Delta:
    """The differences between two domains."""
    delta = Delta()
    _compare(old, new, delta)
    return delta


def compare_siblings(old: list[Element], new: list[Element]) -> Delta:
    """The differences between two runs of siblings; paths of what is added mean nothing."""
    delta = Delta()
    _compare_siblings(old, new, delta)
    return delta


def _compare(old: Element, new: Element, delta: Delta) -> None:
    if old.digest == new.digest:
        return
    for name in {**old.attributes, **new.attributes}:
        _value(old.part(f"@{name}"), old.attributes.get(name), new.attributes.get(name), delta)
    _value(old.part("text()"), old.text or None, new.text or None, delta)
    _compare_siblings(old.children, new.children, delta)


def _compare_siblings(old: list[Element], new: list[Element], delta: Delta) -> None:
    by_tag: dict[str, tuple[list[Element], list[Element]]] = defaultdict(lambda: ([], []))
    for child in old:
        by_tag[child.tag][0].append(child)
    for child in new:
        by_tag[child.tag][1].append(child)
    for before, after in by_tag.values():
        pairs, removed, added = _match(before, after)
        delta.removed += removed
        delta.added += added
        for one, other in pairs:
            _compare(one, other, delta)


def _value(path: str, old: str | None, new: str | None, delta: Delta) -> None:
    if old == new:
        return
    if old is None:
        delta.come[path] = new or ""
    elif new is None:
        delta.gone[path] = old
    else:
        delta.changed[path] = (old, new)


def _match(old: list[Element], new: list[Element]) -> tuple[_Pairs, list[Element], list[Element]]:
    """Pairs of siblings of one name, and those of either side that have no counterpart."""
    if len(old) == len(new) == 1:
        return [(old[0], new[0])], [], []
    pairs: _Pairs = []
    for key in (lambda element: element.digest, identity):
        found, old, new = _pair_by(key, old, new)
        pairs += found
    if len(old) == len(new):  # renamed
        return [*pairs, *zip(old, new, strict=True)], [], []
    return pairs, old, new


def _pair_by(
    key: Callable[[Element], Hashable], old: list[Element], new: list[Element]
) -> tuple[_Pairs, list[Element], list[Element]]:
    waiting: dict[Hashable, deque[Element]] = defaultdict(deque)
    for element in new:
        waiting[key(element)].append(element)
    pairs, left = [], []
    for element in old:
        same = waiting.get(key(element))
        if same:
            pairs.append((element, same.popleft()))
        else:
            left.append(element)
    taken = {id(other) for _, other in pairs}
    return pairs, left, [element for element in new if id(element) not in taken]


def identity(element: Element) -> Hashable:
    """What makes an element the one it is among its siblings: its alias, else the attributes that name it."""
    alias = element.child("alias")
    if alias is not None:
        return alias.attributes.get("name")
    target = element.child("target")
    named = target.attributes.get("name") if target is not None else None
    return (named, *(element.attributes.get(name) for name in _IDENTITY))
