"""Find out by converting variants which values of the input each part of a domain hangs on."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from typing import TypeAlias

import orjson

from kvnode._fast.domain import Converter
from kvnode.api.errors import ConversionError
from kvnode.provenance.alternatives import COMPANIONS, UNIONS, other_values
from kvnode.provenance.document import Document, Node
from kvnode.provenance.splice import Baseline

__all__ = ["Influences", "Prober", "influences"]

Influences: TypeAlias = dict[str, list[Node]]
"""Path of an element, attribute or text -> the nodes that change it or make it vanish, in the order of the
documents."""

_NETWORK = ("interfaces", "networks", "domainAttachmentByInterface", "networkInfo")

_FIRST_EXTRA_CPU, _EXTRA_CPUS = 4096, 64
"""Host CPUs to imagine, far from real ones; the first is even."""


class Prober:
    """A conversion, and what becomes of its domain when the input varies."""

    def __init__(self, vmi: Document, context: Document) -> None:
        """Raises ConversionError when the input itself does not convert."""
        self.vmi = vmi
        self.context = context
        self._converter = Converter(context.raw)
        self.xml = self._converter.convert(vmi.raw)
        self._baseline = Baseline(self.xml)
        self.domain = self._baseline.domain
        self._known: dict[int, frozenset[str]] = {}

    def lost(self, vmi: bytes | None = None, context: bytes | None = None) -> frozenset[str]:
        """Paths of what another VMI, another context or both change in the domain or take out of it.

        Nothing when the variant does not convert: that teaches nothing.
        """
        return self.tried(vmi, context) or frozenset()

    def tried(self, vmi: bytes | None = None, context: bytes | None = None) -> frozenset[str] | None:
        """The same, or None when the variant does not convert."""
        try:
            converter = self._converter if context is None else Converter(context)
            xml = converter.convert(self.vmi.raw if vmi is None else vmi)
        except ConversionError:
            return None
        if xml == self.xml:
            return frozenset()
        known = self._known.get(hash(xml))
        if known is None:
            known = self._known[hash(xml)] = frozenset(self._baseline.compare(xml).lost())
        return known


def influences(prober: Prober) -> Influences:
    """Everything that the values which are there do to the domain."""
    found: dict[str, dict[int, Node]] = defaultdict(dict)

    def note(node: Node, paths: frozenset[str]) -> None:
        for path in paths:
            found[path].setdefault(id(node), node)

    stuck = []
    for node in prober.vmi.nodes[1:]:
        outcomes = [prober.tried(vmi=variant) for variant in _variants(prober.vmi, node)]
        for paths in outcomes:
            note(node, paths or frozenset())
        if node.is_leaf and None in outcomes and not any(outcomes):
            stuck.append(node)
    for node, paths in _with_more_cpus(prober, stuck):
        note(node, paths)
    for group, vmi, context in _renamed(prober):
        paths = prober.lost(vmi=vmi, context=context)
        for node in group:
            note(node, paths)
    for node in prober.context.nodes[1:]:
        for variant in (*_variants(prober.context, node), *_accompanied(prober.context, node)):
            note(node, prober.lost(context=variant))
        if node.keys == ("architecture",):
            note(node, _elsewhere(prober, node))
    return {path: list(nodes.values()) for path, nodes in found.items()}


def _variants(document: Document, node: Node) -> Iterator[bytes]:
    """The document without this node, and with others in its place."""
    yield document.without(node)
    key = node.keys[-1]
    field = next((key for key in reversed(node.keys) if isinstance(key, str)), "")
    if node.is_leaf:
        for value in other_values(field, node.value):
            yield document.with_value([node], value)
    parent = document.by_keys[node.keys[:-1]]
    for union in UNIONS:
        if key in union:
            for name, value in union.items():
                if name not in parent.value:
                    kept = node.value if not union[str(key)] and not value else value
                    yield document.with_other_member(node, name, kept)


def _with_more_cpus(prober: Prober, stuck: list[Node]) -> Iterator[tuple[Node, frozenset[str]]]:
    """What nodes do of which no variant converts because dedicated vCPUs are wanted and the host has none
    left."""
    context = prober.context.nodes[0].value
    if not stuck or not context.get("cpuSet"):
        return
    extra = range(_FIRST_EXTRA_CPU, _FIRST_EXTRA_CPU + _EXTRA_CPUS)
    cpus = [{"id": cpu, "siblings": [cpu - cpu % 2, cpu - cpu % 2 + 1]} for cpu in extra]
    roomy = {**context, "cpuSet": [*context["cpuSet"], *extra]}
    cells = (context.get("topology") or {}).get("numa_cells")
    if cells:
        first = {**cells[0], "cpus": [*(cells[0].get("cpus") or ()), *cpus]}
        roomy["topology"] = {**context["topology"], "numa_cells": [first, *cells[1:]]}
    try:
        other = Prober(prober.vmi, Document(roomy, "context"))
    except ConversionError:
        return
    for node in stuck:
        for variant in _variants(prober.vmi, node):
            yield node, other.lost(vmi=variant)


def _elsewhere(prober: Prober, architecture: Node) -> frozenset[str]:
    """What another architecture changes beside the devices, which may keep the machine from converting for it."""
    spec = prober.vmi.nodes[0].value.get("spec")
    domain = spec.get("domain") if isinstance(spec, dict) else None
    if not isinstance(domain, dict):
        return frozenset()
    bare = {**prober.vmi.nodes[0].value, "spec": {**spec, "domain": {**domain, "devices": {}}}}
    try:
        other = Prober(Document(bare), prober.context)
    except ConversionError:
        return frozenset()
    variants = list(_variants(prober.context, architecture))
    paths = frozenset[str]().union(*(other.lost(context=variant) for variant in variants))
    return frozenset(path for path in paths if not path.startswith("devices"))


def _accompanied(context: Document, node: Node) -> Iterator[bytes]:
    """The context with other values for a node, and beside it the member without which they would not
    convert."""
    companion = COMPANIONS.get(str(node.keys[0])) if len(node.keys) == 1 else None
    if companion is not None:
        around = {
            key: value
            for key, value in context.nodes[0].value.items()
            if key not in (node.keys[0], companion[0])
        }
        for value in other_values(str(node.keys[0]), node.value):
            yield orjson.dumps({**around, node.keys[0]: value, companion[0]: companion[1]})


def _renamed(prober: Prober) -> Iterator[tuple[list[Node], bytes, bytes]]:
    """Volumes, disks, interfaces and networks are tied by name: each name changed everywhere at once."""
    groups: dict[tuple[str, bool], list[Node]] = defaultdict(list)
    for node in prober.vmi.nodes:
        if node.keys[-1:] == ("name",) and node.keys[0] in ("spec", "status") and isinstance(node.value, str):
            groups[node.value, _is_network(node)].append(node)
    members: dict[tuple[str, bool], list[Node]] = defaultdict(list)
    for node in prober.context.nodes:
        if len(node.keys) == 2 and isinstance(node.keys[1], str):
            members[node.keys[1], _is_network(node)].append(node)
    for (name, network), nodes in groups.items():
        in_spec = [node for node in nodes if node.keys[0] == "spec"]
        known = members.get((name, network), [])
        if len(nodes) + len(known) > 1:
            vmi = prober.vmi.with_names(nodes, [], name + "x")
            yield in_spec, vmi, prober.context.with_names([], known, name + "x")


def _is_network(node: Node) -> bool:
    return any(key in _NETWORK for key in node.keys[:4])
