"""A JSON document as bytes in which every value knows its place, so that a variant is one splice away."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, TypeAlias

import orjson

from kvnode.api.errors import ConversionError

__all__ = ["Document", "Keys", "Node", "shown_path"]

Keys: TypeAlias = tuple[str | int, ...]
"""Where a value stands: names of members and indexes of items, from the root."""

MAX_DEPTH = 100
"""How deep a document may nest; the API's own deepest field is at a quarter of that."""


@dataclass(slots=True, eq=False)
class Node:
    """One value of a document."""

    keys: Keys
    path: str
    """The same as errors write it: ``spec.domain.devices.disks[0].name``."""
    value: Any
    start: int = 0
    end: int = 0
    """The value's bytes."""
    member: int = 0
    """Where the member begins (its name) or the item (itself)."""
    cut: tuple[int, int] = (0, 0)
    """The bytes to leave out for the member or item to be gone, a comma among them."""

    @property
    def is_leaf(self) -> bool:
        """Whether it is neither an object nor a list."""
        return not isinstance(self.value, (dict, list))

    def is_below(self, other: Node) -> bool:
        """Whether it stands inside of `other`."""
        return len(self.keys) > len(other.keys) and self.keys[: len(other.keys)] == other.keys


def shown_path(keys: Keys, prefix: str = "") -> str:
    """Keys as a path: ``("spec", "volumes", 0)`` is ``spec.volumes[0]``."""
    path = prefix
    for key in keys:
        path += f"[{key}]" if isinstance(key, int) else f".{key}" if path else key
    return path


class Document:
    """A document and its nodes in the order of its bytes, the root first. Never changed once made."""

    def __init__(self, value: Any, prefix: str = "", limit: int = 2**31) -> None:
        """`prefix` leads every path.

        Raises:
            ConversionError: it nests too deeply, or has more than `limit` nodes.
        """
        self._prefix = prefix
        self._limit = limit
        self._parts: list[bytes] = []
        self._size = 0
        self.nodes: list[Node] = []
        self._write(value, ())
        self.raw = b"".join(self._parts)
        self.by_keys = {node.keys: node for node in self.nodes}

    def without(self, node: Node) -> bytes:
        """The document with a member or an item left out."""
        return self.raw[: node.cut[0]] + self.raw[node.cut[1] :]

    def with_value(self, nodes: Iterable[Node], value: Any) -> bytes:
        """The document with another value in the place of each of these nodes, none of them inside of
        another."""
        return self._spliced([(node.start, node.end) for node in nodes], orjson.dumps(value))

    def with_names(self, values: Iterable[Node], members: Iterable[Node], name: str) -> bytes:
        """The document with a name given to these values, and to these members in the place of their own."""
        text = orjson.dumps(name)
        spans = [(node.start, node.end) for node in values] + [
            (node.member, node.start - 1) for node in members
        ]
        return self._spliced(spans, text)

    def with_member(self, node: Node, name: str, value: Any) -> bytes:
        """The document with a new member in an object."""
        text = orjson.dumps({name: value})[1:-1] + (b"," if node.value else b"")
        at = node.start + 1
        return self.raw[:at] + text + self.raw[at:]

    def with_other_member(self, node: Node, name: str, value: Any) -> bytes:
        """The document with a member of another name and value in the place of this one."""
        return self.raw[: node.member] + orjson.dumps({name: value})[1:-1] + self.raw[node.end :]

    def _spliced(self, spans: list[tuple[int, int]], text: bytes) -> bytes:
        pieces, at = [], 0
        for start, end in sorted(spans):
            pieces += [self.raw[at:start], text]
            at = end
        return b"".join([*pieces, self.raw[at:]])

    def _put(self, text: bytes) -> None:
        self._parts.append(text)
        self._size += len(text)

    def _write(self, value: Any, keys: Keys) -> Node:
        node = Node(keys, shown_path(keys, self._prefix), value, start=self._size)
        node.member = self._size
        self.nodes.append(node)
        if len(self.nodes) > self._limit:
            raise ConversionError(
                self._prefix, f"is too large to explain or compare: it has more than {self._limit} values"
            )
        if len(keys) > MAX_DEPTH:
            raise ConversionError(node.path[:200], f"is nested more than {MAX_DEPTH} deep")
        if isinstance(value, dict):
            self._put(b"{")
            self._write_children(((name, orjson.dumps(name) + b":", v) for name, v in value.items()), keys)
            self._put(b"}")
        elif isinstance(value, list):
            self._put(b"[")
            self._write_children(((index, b"", v) for index, v in enumerate(value)), keys)
            self._put(b"]")
        else:
            self._put(orjson.dumps(value))
        node.end = self._size
        return node

    def _write_children(self, children: Iterable[tuple[str | int, bytes, Any]], keys: Keys) -> None:
        before: Node | None = None
        for key, lead, value in children:
            if before is not None:
                self._put(b",")
            member = self._size
            self._put(lead)
            node = self._write(value, (*keys, key))
            node.member = member
            if before is None:
                node.cut = (member, node.end)
            else:
                node.cut = (before.end, node.end)
                if before.cut[1] == before.end and before.cut[0] == before.member:
                    before.cut = (before.member, member)  # the first: its comma is behind it
            before = node
