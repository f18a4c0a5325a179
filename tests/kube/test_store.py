"""The store."""

from __future__ import annotations

import tracemalloc
from collections.abc import Iterable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kvnode.kube.objects import Object
from kvnode.kube.store import Store, entry_of


def pod(name: str, node: str = "n1", version: str = "1") -> Object:
    return {
        "metadata": {"namespace": "ns", "name": name, "uid": f"u-{name}", "resourceVersion": version},
        "spec": {"nodeName": node},
    }


def node_of(obj: Object) -> Iterable[str]:
    return [node] if (node := obj["spec"].get("nodeName")) else []


@pytest.fixture
def store() -> Store:
    store = Store({"node": node_of})
    for name, node in (("b", "n1"), ("a", "n1"), ("c", "n2")):
        obj = pod(name, node)
        store.put(entry_of(obj), obj)
    return store


def test_objects_by_key(store: Store) -> None:
    assert store.get("ns/a") == pod("a")
    assert store.get("ns/none") is None
    assert "ns/a" in store
    assert sorted(store) == ["ns/a", "ns/b", "ns/c"]
    assert len(list(store.objects())) == len(store) == 3


def test_what_is_handed_out_is_the_asker_s_own(store: Store) -> None:
    mine = store.get("ns/a")
    assert mine is not None
    mine["spec"]["nodeName"] = "changed"
    for found in store.by("node", "n1"):
        found["metadata"].clear()
    assert store.get("ns/a") == pod("a")


def test_what_is_put_in_stays_the_giver_s() -> None:
    store = Store()
    obj = {**pod("a"), "metadata": {**pod("a")["metadata"], "managedFields": [{"manager": "kubectl"}]}}
    store.put(entry_of(obj), obj)
    assert obj["metadata"]["managedFields"]
    obj["spec"]["nodeName"] = "changed"
    assert store.get("ns/a") == pod("a"), "without managed fields"


def test_an_index_follows_its_objects(store: Store) -> None:
    assert store.keys_by("node", "n1") == ["ns/a", "ns/b"]
    moved = pod("a", "n2")
    store.put(entry_of(moved), moved)
    removed = store.remove("ns/b")
    assert removed is not None
    assert removed.load() == pod("b")
    assert store.keys_by("node", "n1") == []
    assert store.keys_by("node", "n2") == ["ns/a", "ns/c"]
    assert store.remove("ns/b") is None
    with pytest.raises(KeyError):
        store.keys_by("zone", "x")


@given(st.lists(st.tuples(st.sampled_from("abc"), st.sampled_from(["", "n1", "n2", None])), max_size=30))
def test_an_index_is_what_a_scan_would_find(steps: list[tuple[str, str | None]]) -> None:
    store = Store({"node": node_of})
    for name, node in steps:
        if node is None:
            store.remove(f"ns/{name}")
        else:
            obj = pod(name, node)
            store.put(entry_of(obj), obj)
    for node in ("", "n1", "n2"):
        scan = sorted(
            f"ns/{obj['metadata']['name']}" for obj in store.objects() if node and node in list(node_of(obj))
        )
        assert store.keys_by("node", node) == scan


def test_an_object_costs_its_text_and_little_more() -> None:
    obj = {**pod("a"), "spec": {f"field{number}": {"value": [number, "text"]} for number in range(200)}}
    size = len(entry_of(obj).raw)
    store = Store()
    tracemalloc.start()
    for number in range(500):
        one = {**obj, "metadata": {**obj["metadata"], "name": f"o{number}"}}
        store.put(entry_of(one), one)
    used, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert used / 500 < size + 700


def test_an_object_that_an_index_cannot_read_is_kept(caplog: pytest.LogCaptureFixture) -> None:
    def labels(obj: Object) -> Iterable[str]:
        return list(obj["metadata"]["labels"])

    store = Store({"node": node_of, "label": labels})
    odd = pod("odd", "n3")
    store.put(entry_of(odd), odd)
    assert store.keys_by("node", "n3") == ["ns/odd"]
    assert "odd: left out of the index label" in caplog.text
    mended = {**odd, "metadata": {**odd["metadata"], "labels": {"a": "b"}, "resourceVersion": "2"}}
    store.put(entry_of(mended), mended)
    assert store.keys_by("label", "a") == ["ns/odd"]
    assert store.remove("ns/odd") is not None
    assert store.keys_by("node", "n3") == store.keys_by("label", "a") == []
