"""Fields and context keys that are absent and would make a difference."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from kvnode.provenance.alternatives import ABSENT_CONTEXT, probe_values
from kvnode.provenance.document import Document, Keys, Node, shown_path
from kvnode.provenance.probing import Prober
from kvnode.spec.model import TYPES, fields

__all__ = ["unset_influences"]

_DEEPEST = 4
"""How many absent objects are imagined around an absent field."""


def unset_influences(prober: Prober, wanted: set[str]) -> dict[str, list[Node]]:
    """For each path of `wanted`: nodes that stand for absent fields and keys whose setting would change
    it."""
    found: dict[str, list[Node]] = {}
    for node, paths in _effects(prober):
        for path in paths & wanted:
            nodes = found.setdefault(path, [])
            if node not in nodes:
                nodes.append(node)
    return found


def _effects(prober: Prober) -> Iterator[tuple[Node, frozenset[str]]]:
    spec = prober.vmi.by_keys.get(("spec",))
    if spec is not None and isinstance(spec.value, dict):
        for keys, parent, name, values in _absent_fields(prober.vmi, spec, "VirtualMachineInstanceSpec"):
            node = Node(keys, shown_path(keys), None)
            for value in values:
                yield node, prober.lost(vmi=prober.vmi.with_member(parent, name, value))
    for keys, parent, name, values in _absent_context(prober):
        node = Node(keys, shown_path(keys, "context"), None)
        for value in values:
            yield node, prober.lost(context=prober.context.with_member(parent, name, value))


_Absent = tuple[Keys, Node, str, list[Any]]
"""Keys of the absent field, the node that it would stand in, the member to add there, and values for that
member."""


def _absent_fields(document: Document, node: Node, type_name: str) -> Iterator[_Absent]:
    for name, field in fields(type_name).items():
        keys = (*node.keys, name)
        value = node.value.get(name)
        if value is None and name not in node.value and not field.containers:
            for inner, values in _imagined(field.name, (name,)):
                yield (*node.keys, *inner), node, name, values
        elif field.name in TYPES:
            if isinstance(value, dict) and not field.containers:
                yield from _absent_fields(document, document.by_keys[keys], field.name)
            elif isinstance(value, list) and field.containers == ("[]",):
                for index, item in enumerate(value):
                    if isinstance(item, dict):
                        yield from _absent_fields(document, document.by_keys[*keys, index], field.name)


def _imagined(type_name: str, keys: tuple[str, ...]) -> Iterator[tuple[tuple[str, ...], list[Any]]]:
    """An absent field, and what would be inside of it, with values for the outermost member."""
    if type_name not in TYPES:
        values = [_wrapped(keys[1:], value) for value in probe_values(keys[-1], type_name)]
        if values:
            yield keys, values
        return
    yield keys, [_wrapped(keys[1:], {})]
    if len(keys) < _DEEPEST:
        for name, field in fields(type_name).items():
            if not field.containers:
                yield from _imagined(field.name, (*keys, name))


def _wrapped(keys: tuple[str, ...], value: Any) -> Any:
    for key in reversed(keys):
        value = {key: value}
    return value


def _absent_context(prober: Prober) -> Iterator[_Absent]:
    root = prober.context.nodes[0]
    for name, values in ABSENT_CONTEXT.items():
        inside = root.value.get(name)
        if name not in root.value:
            yield (name,), root, name, list(values)
        elif isinstance(inside, dict):
            for key, value in next((v for v in values if isinstance(v, dict)), {}).items():
                if key not in inside:
                    yield (name, key), prober.context.by_keys[name,], key, [value]
    volumes = [
        node.value
        for node in prober.vmi.nodes
        if node.keys[1:2] == ("volumes",) and node.keys[3:] == ("name",)
    ]
    for name, value in (("isBlockPVC", True), ("isBlockDV", True), ("disksInfo", {"format": "qcow2"})):
        parent = prober.context.by_keys.get((name,))
        for volume in volumes:
            if not isinstance(volume, str):
                continue
            if parent is None:
                yield (name, volume), root, name, [{volume: value}]
            elif isinstance(parent.value, dict) and volume not in parent.value:
                yield (name, volume), parent, volume, [value]
