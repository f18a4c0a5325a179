"""A document's variants are what deleting and replacing in Python would give."""

from __future__ import annotations

import copy
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kvnode import ConversionError
from kvnode.provenance.document import MAX_DEPTH, Document, Node, shown_path

JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**31), 2**31) | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=4), inner, max_size=4),
    max_leaves=15,
)


def parent_in(value: Any, node: Node) -> Any:
    """The container of the same place in another copy of the document."""
    for key in node.keys[:-1]:
        value = value[key]
    return value


@given(JSON)
def test_bytes_are_the_document(value: Any) -> None:
    document = Document(value)
    assert json.loads(document.raw) == value
    for node in document.nodes:
        assert json.loads(document.raw[node.start : node.end]) == node.value


@given(JSON)
def test_without(value: Any) -> None:
    document = Document(value)
    for node in document.nodes[1:]:
        expected = copy.deepcopy(value)
        del parent_in(expected, node)[node.keys[-1]]
        assert json.loads(document.without(node)) == expected


@given(JSON, JSON)
def test_with_value(value: Any, other: Any) -> None:
    document = Document(value)
    for node in document.nodes[1:]:
        expected = copy.deepcopy(value)
        parent_in(expected, node)[node.keys[-1]] = other
        assert json.loads(document.with_value([node], other)) == expected


@given(JSON)
def test_with_member(value: Any) -> None:
    document = Document(value)
    for node in document.nodes:
        if isinstance(node.value, dict) and "new" not in node.value:
            changed = Document(json.loads(document.with_member(node, "new", [1])))
            assert changed.by_keys[node.keys].value == {**node.value, "new": [1]}


def test_with_other_member() -> None:
    document = Document({"a": 1, "b": {"c": 2}, "d": 3})
    changed = document.with_other_member(document.by_keys["b",], "x", [])
    assert json.loads(changed) == {"a": 1, "x": [], "d": 3}


def test_names_change_together() -> None:
    document = Document({"disks": [{"name": "a"}, {"name": "b"}], "info": {"a": 1}})
    value, member = document.by_keys["disks", 0, "name"], document.by_keys["info", "a"]
    changed = json.loads(document.with_names([value], [member], "é"))
    assert changed == {"disks": [{"name": "é"}, {"name": "b"}], "info": {"é": 1}}


@pytest.mark.parametrize(
    ("keys", "prefix", "path"),
    [
        (("spec", "volumes", 0, "name"), "", "spec.volumes[0].name"),
        (("cpuSet", 3), "context", "context.cpuSet[3]"),
        ((), "context", "context"),
    ],
)
def test_paths(keys: tuple[str | int, ...], prefix: str, path: str) -> None:
    assert shown_path(keys, prefix) == path


def test_too_deep() -> None:
    value: Any = 1
    for _ in range(MAX_DEPTH + 1):
        value = [value]
    with pytest.raises(ConversionError, match="deep"):
        Document(value)


def test_too_large() -> None:
    assert len(Document([1, 2, 3], limit=4).nodes) == 4
    with pytest.raises(ConversionError, match="more than 4 values"):
        Document([1, 2, 3, 4], limit=4)
