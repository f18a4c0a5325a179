"""Kinds, paths and the parts that every object has."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kvnode.kube.objects import key_of, micro_timestamp, split_key, timestamp, version_of
from kvnode.kube.resources import NODES, PODS, VIRTUAL_MACHINES


def test_paths() -> None:
    assert PODS.path() == "/api/v1/pods"
    assert PODS.path("ns") == "/api/v1/namespaces/ns/pods"
    assert PODS.path("ns", "p", "status") == "/api/v1/namespaces/ns/pods/p/status"
    assert NODES.path(name="n") == "/api/v1/nodes/n"
    assert VIRTUAL_MACHINES.path("ns", "a") == "/apis/kubevirt.io/v1/namespaces/ns/virtualmachines/a"
    assert (str(PODS), str(VIRTUAL_MACHINES)) == ("pods", "virtualmachines.kubevirt.io")
    assert (PODS.api_version, VIRTUAL_MACHINES.api_version) == ("v1", "kubevirt.io/v1")


def test_a_namespace_where_none_belongs_and_none_where_one_does() -> None:
    with pytest.raises(ValueError, match="belong to no namespace"):
        NODES.path("ns", "n")
    with pytest.raises(ValueError, match="a namespace is needed"):
        PODS.path(name="p")


@given(st.text(min_size=1), st.text(min_size=1))
def test_no_name_leaves_its_place_in_the_path(namespace: str, name: str) -> None:
    try:
        path = PODS.path(namespace, name)
    except (ValueError, UnicodeEncodeError):
        return
    assert path.startswith("/api/v1/namespaces/")
    assert path.count("/") == 6
    assert not set(path) & set("?#% \n") - {"%"}
    assert ".." not in path.split("/")


@pytest.mark.parametrize(
    ("obj", "key"),
    [
        ({"metadata": {"namespace": "ns", "name": "a"}}, "ns/a"),
        ({"metadata": {"name": "a"}}, "a"),
        ({"metadata": {"namespace": "", "name": "a"}}, "a"),
        ({}, ""),
        ({"metadata": None}, ""),
    ],
)
def test_keys(obj: dict[str, object], key: str) -> None:
    assert key_of(obj) == key
    namespace, name = split_key(key)
    assert (f"{namespace}/{name}" if namespace else name) == key


@pytest.mark.parametrize(("text", "number"), [("12", 12), ("", 0), (None, 0), ("x", 0), (12, 0), ("²", 0)])
def test_resource_versions(text: object, number: int) -> None:
    assert version_of({"metadata": {"resourceVersion": text}}) == number


def test_times_are_utc() -> None:
    moment = datetime(2026, 3, 1, 1, 2, 3, 45, timezone(timedelta(hours=1)))
    assert timestamp(moment) == "2026-03-01T00:02:03Z"
    assert micro_timestamp(moment) == "2026-03-01T00:02:03.000045Z"
    assert timestamp(datetime(2026, 3, 1, tzinfo=UTC)) == "2026-03-01T00:00:00Z"
