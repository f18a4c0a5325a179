"""A collection in memory that follows a real API server through its faults."""

from __future__ import annotations

import asyncio
import os
import random
import signal
from pathlib import Path

import pytest

from kvnode.kube.client import Client, PatchType
from kvnode.kube.errors import DeadlineExceeded
from kvnode.kube.informer import Change, Informer, run_informers
from kvnode.kube.objects import Object
from kvnode.kube.resources import CONFIG_MAPS
from tests.cluster.cluster import Cluster
from tests.kube.diary import Diary
from tests.kube.faults import Fault, FaultyServer
from tests.kube.loops import now, real_time, until
from tests.kube.support import background, client_of, config_map, faulty

GONE = b'{"kind":"Status","code":410,"reason":"Expired","message":"too old resource version"}'
GONE_LINE = b'{"type":"ERROR","object":' + GONE + b"}\n"


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


async def asks_at_leisure(server: FaultyServer) -> None:
    """A watch that ends at once is asked for again, but not much oftener than once a second."""
    began = now()
    await asyncio.sleep(3)
    assert server.count("watch=true") <= 2 + now() - began
    await until(lambda: server.count("watch=true") >= 2)


@pytest.mark.cluster
@pytest.mark.parametrize(
    ("status", "body"), [(410, GONE), (200, b"")], ids=["always says 410", "ends every watch"]
)
@real_time
async def test_a_server_that_ends_all_at_once_is_not_asked_without_pause(
    control_plane: Cluster, namespace: str, status: int, body: bytes
) -> None:
    async with faulty(control_plane) as (server, client):
        server.faults.append(Fault("watch=true", times=10**6, status=status, body=body))
        informer = Informer(client, CONFIG_MAPS, namespace=namespace)
        async with background(informer.run()):
            await asks_at_leisure(server)


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
    try:
        stats = [path.read_text() for path in Path(f"/proc/{pid}/task").glob("*/stat")]
    except OSError:  # one has ended meanwhile
        return False
    return all(text.rpartition(")")[2].split()[0] == "T" for text in stats)


@pytest.mark.cluster
@real_time
async def test_a_server_that_stands_still_for_a_while(control_plane: Cluster, namespace: str) -> None:
    """The real API server, stopped: connections stay, nothing answers, and nothing is lost."""
    async with client_of(control_plane, timeout=1) as impatient, client_of(control_plane) as client:
        informer = Informer(client, CONFIG_MAPS, namespace=namespace)
        async with background(informer.run()):
            await informer.wait_synced()
            pid = control_plane.pid_of("kube-apiserver")
            os.kill(pid, signal.SIGSTOP)
            try:
                # Its threads stop one by one; the last of them may still answer.
                await until(lambda: stopped(pid))
                with pytest.raises(DeadlineExceeded):
                    await impatient.get(CONFIG_MAPS, "c", namespace)
            finally:
                os.kill(pid, signal.SIGCONT)
            await client.create(CONFIG_MAPS, config_map(namespace, "c"))
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
            await until(lambda: content(informer) == expected, 120)
            assert {key for key, number in counted.items() if number} == set(expected)
            assert set(counted.values()) <= {0, 1}
