"""A collection in memory, told by the test what a server may tell."""

from __future__ import annotations

import asyncio
import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kvnode.kube.informer import Change, Informer
from kvnode.kube.objects import Object
from kvnode.kube.resources import CONFIG_MAPS
from kvnode.kube.watch import Event
from tests.kube.diary import Diary
from tests.kube.loops import virtual_time


def obj(name: str, version: int, uid: str = "") -> Object:
    return {"metadata": {"name": name, "uid": uid or name, "resourceVersion": str(version)}}


def alone() -> Informer:
    """An informer without a server, to be told by the test."""
    informer = Informer(None, CONFIG_MAPS)  # type: ignore[arg-type]
    informer.reflector.synced.set()
    return informer


def tell_list(informer: Informer, version: int, *objects: Object) -> None:
    informer.begin(str(version))
    for one in objects:
        informer.listed(one)
    informer.complete(str(version))


@virtual_time
async def test_a_second_list_tells_what_was_deleted_meanwhile() -> None:
    informer = alone()
    diary = Diary(informer)
    tell_list(informer, 10, obj("a", 1), obj("b", 2), obj("c", 3))
    tell_list(informer, 20, obj("a", 1), obj("b", 12), obj("d", 15))
    assert diary.lines == ["added a", "added b", "added c", "changed b", "added d", "deleted c"]


@virtual_time
async def test_a_namesake_is_another_object() -> None:
    informer = alone()
    diary = Diary(informer)
    tell_list(informer, 10, obj("a", 1, "first"))
    tell_list(informer, 20, obj("a", 15, "second"))
    informer.happened(Event("MODIFIED", obj("a", 25, "third")))
    assert diary.lines == ["added a", "deleted a", "added a", "deleted a", "added a"]


@virtual_time
async def test_an_own_write_is_known_at_once_and_told_once() -> None:
    informer = alone()
    diary = Diary(informer)
    tell_list(informer, 10, obj("a", 1))
    assert informer.observe(obj("a", 11))
    informer.happened(Event("MODIFIED", obj("a", 11)))
    informer.happened(Event("MODIFIED", obj("a", 12)))
    assert diary.lines == ["added a", "changed a", "changed a"]


@virtual_time
async def test_an_own_write_that_the_watch_has_passed_is_not_taken() -> None:
    """The watch told of its deletion already: taken, the object would be there for ever."""
    informer = alone()
    diary = Diary(informer)
    tell_list(informer, 10)
    informer.happened(Event("ADDED", obj("a", 11)))
    informer.happened(Event("DELETED", obj("a", 12)))
    assert not informer.observe(obj("a", 11))
    assert not informer.observe({"metadata": {"name": "b", "resourceVersion": "opaque"}})
    assert diary.lines == ["added a", "deleted a"]


@virtual_time
async def test_an_own_write_survives_an_older_list_and_older_events() -> None:
    informer = alone()
    diary = Diary(informer)
    tell_list(informer, 10, obj("a", 1))
    informer.observe(obj("a", 15))
    informer.observe(obj("b", 16))
    informer.happened(Event("MODIFIED", obj("a", 12)))
    tell_list(informer, 14, obj("a", 12))
    assert informer.store.get("b")
    assert diary.lines == ["added a", "changed a", "added b"]
    tell_list(informer, 17, obj("a", 15))
    assert diary.lines[-1] == "deleted b"


@virtual_time
async def test_the_deletion_of_a_namesake_before_is_not_its_own() -> None:
    informer = alone()
    tell_list(informer, 10, obj("a", 1, "first"))
    informer.happened(Event("DELETED", obj("a", 11, "first")))
    informer.observe(obj("a", 13, "third"))
    informer.happened(Event("ADDED", obj("a", 12, "second")))
    informer.happened(Event("DELETED", obj("a", 12, "second")))
    assert informer.store.get("a") == obj("a", 13, "third")


@virtual_time
async def test_a_server_restored_from_a_backup_is_believed() -> None:
    informer = alone()
    tell_list(informer, 100, obj("a", 90), obj("b", 95))
    tell_list(informer, 50, obj("a", 40))
    assert informer.store.get("a") == obj("a", 40)
    assert "b" not in informer.store


@virtual_time
async def test_a_handler_that_comes_late_is_told_what_there_is() -> None:
    informer = alone()
    tell_list(informer, 10, obj("a", 1))
    assert Diary(informer).lines == ["added a"]


@virtual_time
async def test_a_handler_that_fails_harms_nobody(caplog: pytest.LogCaptureFixture) -> None:
    informer = alone()

    def fails(change: Change) -> None:
        raise ValueError(change.key)

    informer.add_handler(fails)
    diary = Diary(informer)
    tell_list(informer, 10, obj("a", 1))
    assert diary.lines == ["added a"]
    assert "a handler failed" in caplog.text


class History:
    """A collection's true history, to be told in any of the ways that a server may."""

    def __init__(self) -> None:
        self.version = 0
        self.objects: dict[str, Object] = {}
        self.events: list[Event] = []

    def step(self, name: str, delete: bool) -> None:
        self.version += 1
        known = self.objects.get(name)
        if delete and known:
            del self.objects[name]
            self.events.append(Event("DELETED", obj(name, self.version, known["metadata"]["uid"])))
        elif not delete:
            uid = known["metadata"]["uid"] if known else f"{name}-{self.version}"
            self.objects[name] = obj(name, self.version, uid)
            self.events.append(Event("MODIFIED" if known else "ADDED", self.objects[name]))


@settings(max_examples=200)
@given(
    st.lists(
        st.tuples(st.sampled_from("ab"), st.booleans(), st.sampled_from(["", "observe", "relist"])),
        max_size=25,
    ),
    st.randoms(use_true_random=False),
)
def test_however_it_is_told_the_store_is_the_truth(
    steps: list[tuple[str, bool, str]], source: random.Random
) -> None:
    """The watch lags behind by any number of events; own writes and new lists come in between."""

    async def play() -> None:
        informer = alone()
        counted: dict[str, int] = {}

        def count(change: Change) -> None:
            delta = 1 if change.added else -1 if change.deleted else 0
            counted[change.key] = counted.get(change.key, 0) + delta

        informer.add_handler(count)
        history = History()
        tell_list(informer, 0)
        told = 0
        for name, delete, how in steps:
            history.step(name, delete)
            if how == "observe" and history.events and not delete:
                informer.observe(history.objects[name])
            elif how == "relist":
                tell_list(informer, history.version, *history.objects.values())
                told = len(history.events)
            while told < len(history.events) and source.random() < 0.5:
                informer.happened(history.events[told])
                told += 1
        for event in history.events[told:]:
            informer.happened(event)
        assert {key: informer.store.get(key) for key in informer.store} == history.objects
        assert {key for key, number in counted.items() if number} == set(history.objects)
        assert set(counted.values()) <= {0, 1}

    asyncio.run(play())


@virtual_time
async def test_what_an_own_write_tells_is_marked() -> None:
    informer, seen = alone(), []
    informer.add_handler(lambda change: seen.append(change.own))
    tell_list(informer, 5, obj("a", 1))
    informer.observe(obj("a", 6))
    informer.happened(Event("MODIFIED", obj("a", 6)))
    informer.happened(Event("MODIFIED", obj("a", 7)))
    assert seen == [False, True, False]
