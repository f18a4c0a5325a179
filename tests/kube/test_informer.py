"""A collection in memory: alone, and following a real API server through its faults."""

from __future__ import annotations

import asyncio
import os
import random
import signal
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kvnode.kube.client import Client, PatchType
from kvnode.kube.errors import DeadlineExceeded
from kvnode.kube.informer import Change, Informer, run_informers
from kvnode.kube.objects import Object
from kvnode.kube.resources import CONFIG_MAPS
from kvnode.kube.watch import Event
from tests.cluster.cluster import Cluster
from tests.kube.faults import Fault
from tests.kube.loops import real_time, until, virtual_time
from tests.kube.support import background, client_of, config_map, faulty

GONE = b'{"kind":"Status","code":410,"reason":"Expired","message":"too old resource version"}'
GONE_LINE = b'{"type":"ERROR","object":' + GONE + b"}\n"


class Diary:
    """What a handler is told."""

    def __init__(self, informer: Informer) -> None:
        self.lines: list[str] = []
        informer.add_handler(self)

    def __call__(self, change: Change) -> None:
        word = "added" if change.added else "deleted" if change.deleted else "changed"
        self.lines.append(f"{word} {change.object['metadata']['name']}")


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


@pytest.fixture
def chance() -> random.Random:
    return random.Random(7)  # noqa: S311


async def truth(client: Client, namespace: str) -> dict[str, Object]:
    """What the server has, as a store would keep it."""
    found = {}
    for one in await client.list_all(CONFIG_MAPS, namespace):
        one["metadata"].pop("managedFields", None)
        found[f"{namespace}/{one['metadata']['name']}"] = {"apiVersion": "v1", "kind": "ConfigMap", **one}
    return found


def content(informer: Informer) -> dict[str, Object]:
    return {key: found for key in informer.store if (found := informer.store.get(key))}


@pytest.mark.cluster
@real_time
async def test_following_a_real_server(control_plane: Cluster, namespace: str) -> None:
    async with client_of(control_plane) as client:
        await client.create(CONFIG_MAPS, config_map(namespace, "before"))
        informer = Informer(client, CONFIG_MAPS, namespace=namespace)
        diary = Diary(informer)
        ready = asyncio.Event()
        async with background(run_informers(informer, ready=ready)):
            await ready.wait()
            await client.create(CONFIG_MAPS, config_map(namespace, "after"))
            await client.delete(CONFIG_MAPS, "before", namespace)
            await until(lambda: len(diary.lines) == 3)
            assert diary.lines == ["added before", "added after", "deleted before"]
            assert content(informer) == await truth(client, namespace)


@pytest.mark.cluster
@pytest.mark.parametrize("as_event", [False, True], ids=["answer", "event"])
@real_time
async def test_410_lists_again_and_deletions_in_the_gap_are_told(
    control_plane: Cluster, namespace: str, as_event: bool
) -> None:
    async with faulty(control_plane) as (server, client), client_of(control_plane) as other:
        for name in ("stays", "goes"):
            await other.create(CONFIG_MAPS, config_map(namespace, name))
        informer = Informer(client, CONFIG_MAPS, namespace=namespace)
        diary = Diary(informer)
        async with background(informer.run()):
            await informer.wait_synced()
            await until(lambda: server.count("watch=true"))
            server.faults.append(
                Fault("watch=true", status=200, body=GONE_LINE)
                if as_event
                else Fault("watch=true", status=410, body=GONE)
            )
            server.up = False
            server.cut()
            await other.delete(CONFIG_MAPS, "goes", namespace)
            server.up = True
            await until(lambda: diary.lines[-1:] == ["deleted goes"])
            assert informer.reflector.lists == 2
            assert content(informer) == await truth(other, namespace)


@pytest.mark.cluster
@real_time
async def test_a_cut_stream_is_resumed_without_a_new_list(control_plane: Cluster, namespace: str) -> None:
    async with faulty(control_plane) as (server, client), client_of(control_plane) as other:
        informer = Informer(client, CONFIG_MAPS, namespace=namespace)
        diary = Diary(informer)
        async with background(informer.run()):
            await informer.wait_synced()
            for number in range(3):
                await until(lambda: server.count("watch=true") > len(diary.lines))
                server.cut()
                await other.create(CONFIG_MAPS, config_map(namespace, f"c{number}"))
                await until(lambda: diary.lines[-1:] == [f"added c{number}"])  # noqa: B023 — awaited at once
            assert informer.reflector.lists == 1


@pytest.mark.cluster
@real_time
async def test_a_server_that_always_says_410_is_not_asked_without_pause(
    control_plane: Cluster, namespace: str
) -> None:
    async with faulty(control_plane) as (server, client):
        server.faults.append(Fault("watch=true", times=10**6, status=410, body=GONE))
        informer = Informer(client, CONFIG_MAPS, namespace=namespace)
        async with background(informer.run()):
            await asyncio.sleep(3)
            assert 2 <= server.count("watch=true") <= 5


@pytest.mark.cluster
@real_time
async def test_a_server_that_ends_every_watch_at_once_is_not_asked_without_pause(
    control_plane: Cluster, namespace: str
) -> None:
    async with faulty(control_plane) as (server, client):
        server.faults.append(Fault("watch=true", times=10**6, status=200))
        informer = Informer(client, CONFIG_MAPS, namespace=namespace)
        async with background(informer.run()):
            await asyncio.sleep(3)
            assert 2 <= server.count("watch=true") <= 5


@pytest.mark.cluster
@real_time
async def test_a_server_that_is_away_is_waited_for_and_said_to_be(
    control_plane: Cluster, namespace: str, caplog: pytest.LogCaptureFixture
) -> None:
    async with faulty(control_plane) as (server, client), client_of(control_plane) as other:
        server.up = False
        informer = Informer(client, CONFIG_MAPS, namespace=namespace)
        async with background(informer.run()):
            await until(lambda: informer.reflector.failure)
            assert not informer.reflector.synced.is_set()
            server.up = True
            await informer.wait_synced()
            await until(lambda: informer.reflector.failure is None)
            await other.create(CONFIG_MAPS, config_map(namespace, "c"))
            await until(lambda: len(informer.store) == 1)
            server.up = False
            server.cut()
            await until(lambda: informer.reflector.failure)
            server.up = True
            await until(lambda: informer.reflector.failure is None)  # though nothing happens
            assert informer.reflector.lists == 2
        assert "configmaps: cannot be followed" in caplog.text


def stopped(pid: int) -> bool:
    """Whether all threads of a process are stopped (proc(5), the third field of stat)."""
    stats = [path.read_text() for path in Path(f"/proc/{pid}/task").glob("*/stat")]
    return all(text.rpartition(")")[2].split()[0] == "T" for text in stats)


@pytest.mark.cluster
@real_time
async def test_a_server_that_stands_still_for_a_while(control_plane: Cluster, namespace: str) -> None:
    """The real API server, stopped: connections stay, nothing answers, and nothing is lost."""
    async with client_of(control_plane, timeout=1) as client, client_of(control_plane) as other:
        informer = Informer(client, CONFIG_MAPS, namespace=namespace)
        async with background(informer.run()):
            await informer.wait_synced()
            pid = control_plane.pid_of("kube-apiserver")
            os.kill(pid, signal.SIGSTOP)
            try:
                # Its threads stop one by one; the last of them may still answer.
                await until(lambda: stopped(pid))
                with pytest.raises(DeadlineExceeded):
                    await client.get(CONFIG_MAPS, "c", namespace)
            finally:
                os.kill(pid, signal.SIGCONT)
            await other.create(CONFIG_MAPS, config_map(namespace, "c"))
            await until(lambda: len(informer.store) == 1)
            assert informer.reflector.lists == 1


@pytest.mark.cluster
@real_time
async def test_through_a_storm_of_faults_the_end_is_the_truth(
    control_plane: Cluster, namespace: str, chance: random.Random
) -> None:
    async with faulty(control_plane) as (server, client), client_of(control_plane) as other:
        informer = Informer(client, CONFIG_MAPS, namespace=namespace)
        counted: dict[str, int] = {}

        def count(change: Change) -> None:
            delta = 1 if change.added else -1 if change.deleted else 0
            counted[change.key] = counted.get(change.key, 0) + delta

        informer.add_handler(count)
        async with background(informer.run()):
            await informer.wait_synced()
            for number in range(150):
                name = f"c{chance.randrange(12)}"
                if f"{namespace}/{name}" in await truth(other, namespace) and chance.random() < 0.5:
                    await other.delete(CONFIG_MAPS, name, namespace)
                else:
                    wanted = config_map(namespace, name, n=str(number))
                    await other.patch(
                        CONFIG_MAPS, name, namespace, wanted, PatchType.APPLY, field_manager="t"
                    )
                if number % 15 == 0:
                    server.faults.append(
                        chance.choice(
                            [
                                Fault("watch=true", status=410, body=GONE),
                                Fault("watch=true", status=200, body=GONE_LINE),
                                Fault("watch=true", drop=True),
                                Fault("watch=true", cut_after=chance.randrange(2000)),
                                Fault("watch=true", status=500),
                                Fault("GET", status=429, headers={"Retry-After": "1"}),
                            ]
                        )
                    )
                    server.cut()
            expected = await truth(other, namespace)
            await until(lambda: content(informer) == expected, 30)
            assert {key for key, number in counted.items() if number} == set(expected)
            assert set(counted.values()) <= {0, 1}


@virtual_time
async def test_what_an_own_write_tells_is_marked() -> None:
    informer, seen = alone(), []
    informer.add_handler(lambda change: seen.append(change.own))
    tell_list(informer, 5, obj("a", 1))
    informer.observe(obj("a", 6))
    informer.happened(Event("MODIFIED", obj("a", 6)))
    informer.happened(Event("MODIFIED", obj("a", 7)))
    assert seen == [False, True, False]
