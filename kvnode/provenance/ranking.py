"""Which of the values that have an effect on a line explain it best."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping

from kvnode.provenance.document import Keys, Node

__all__ = ["ranked"]

_SHORTEST_WORD = 3
"""Shorter values agree with lines by accident."""

_KINDS = {"spec": 0, "metadata": 1, "status": 2}


def ranked(nodes: Iterable[Node], value: str | None, owner: Keys, reach: Mapping[int, int]) -> list[Node]:
    """Nodes, the most telling first.

    That is: the one whose very text is the line's; then those of the part that the element around the line
    comes from (`owner`); then those whose text is within the line's; then the spec before what the cluster
    and the node say; then those that do the least else (`reach`: lines changed, by the node's id).
    """

    def rank(node: Node) -> tuple[bool, int, bool, int, int]:
        text = _text(node)
        usable = value is not None and len(text) >= _SHORTEST_WORD
        return (
            not (usable and text == value),
            -_shared(node.keys, owner),
            not (usable and value is not None and text in value),
            3 if node.path.startswith("context") else _KINDS.get(str(node.keys[0]), 0),
            reach[id(node)],
        )

    return sorted(nodes, key=rank)


def _shared(keys: Keys, owner: Keys) -> int:
    """1 where both are in the same item of a list, 0 elsewhere."""
    items = [index for index, key in enumerate(owner) if isinstance(key, int)]
    return int(bool(items) and keys[: items[-1] + 1] == owner[: items[-1] + 1])


def _text(node: Node) -> str:
    if isinstance(node.value, str):
        return node.value
    return "" if isinstance(node.value, (dict, list, bool)) else json.dumps(node.value)
