"""One watch, on a real API server."""

from __future__ import annotations

import asyncio
from contextlib import aclosing

import orjson
import pytest

from kvnode.kube.client import Client
from kvnode.kube.errors import ApiError, ConnectionFailed, Expired
from kvnode.kube.objects import Object, metadata
from kvnode.kube.resources import CONFIG_MAPS
from kvnode.kube.watch import Event, watch
from tests.cluster.cluster import Cluster
from tests.kube.faults import Fault
from tests.kube.loops import now, real_time, until
from tests.kube.support import client_of, config_map, faulty

pytestmark = pytest.mark.cluster


async def version_now(client: Client, namespace: str) -> str:
    """The collection's version."""
    pages = [page async for page in client.pages(CONFIG_MAPS, namespace)]
    return str(metadata(pages[-1])["resourceVersion"])


async def take(client: Client, namespace: str, version: str, count: int, seconds: int = 120) -> list[Event]:
    """So many events, bookmarks left out."""
    found: list[Event] = []
    events = watch(client, CONFIG_MAPS, version, namespace=namespace, seconds=seconds)
    async with aclosing(events):
        async for event in events:
            if event.type != "BOOKMARK":
                found.append(event)
            if len(found) == count:
                break
    return found


def names(events: list[Event]) -> list[tuple[str, str]]:
    return [(event.type, event.object["metadata"]["name"]) for event in events]


@real_time
async def test_what_happens_is_told_in_order(control_plane: Cluster, namespace: str) -> None:
    async with client_of(control_plane) as client:
        version = await version_now(client, namespace)
        taking = asyncio.create_task(take(client, namespace, version, 3))
        made = await client.create(CONFIG_MAPS, config_map(namespace, "c"))
        made["data"] = {"a": "1"}
        await client.replace(CONFIG_MAPS, made)
        await client.delete(CONFIG_MAPS, "c", namespace)
        assert names(await taking) == [("ADDED", "c"), ("MODIFIED", "c"), ("DELETED", "c")]


@real_time
async def test_an_object_of_half_a_megabyte(control_plane: Cluster, namespace: str) -> None:
    """It comes in many pieces, and is longer than the lines that an HTTP library would read."""
    async with client_of(control_plane) as client:
        version = await version_now(client, namespace)
        taking = asyncio.create_task(take(client, namespace, version, 1))
        large = config_map(namespace, "large", a='"' * 500_000)
        await client.create(CONFIG_MAPS, large)
        assert (await taking)[0].object["data"] == large["data"]


@real_time
async def test_the_server_ends_it_in_time(control_plane: Cluster, namespace: str) -> None:
    async with client_of(control_plane) as client:
        version = await version_now(client, namespace)
        began = now()
        events = [
            event async for event in watch(client, CONFIG_MAPS, version, namespace=namespace, seconds=2)
        ]
        assert now() - began > 1
        assert all(event.type == "BOOKMARK" for event in events)


@real_time
async def test_a_version_that_is_too_old(control_plane: Cluster, namespace: str) -> None:
    status: Object = {
        "kind": "Status",
        "code": 410,
        "reason": "Expired",
        "message": "too old resource version",
    }
    async with faulty(control_plane) as (server, client):
        server.faults.append(Fault("watch=true", status=410, body=orjson.dumps(status)))
        with pytest.raises(Expired, match="too old resource version"):
            await take(client, namespace, "1", 1)
        line = orjson.dumps({"type": "ERROR", "object": status}) + b"\n"
        server.faults.append(Fault("watch=true", status=200, body=line))
        with pytest.raises(Expired, match="too old resource version"):
            await take(client, namespace, "1", 1)


@real_time
async def test_another_error_in_the_stream(control_plane: Cluster, namespace: str) -> None:
    line = b'{"type":"ERROR","object":{"kind":"Status","code":500,"message":"etcd is gone"}}\n'
    async with faulty(control_plane) as (server, client):
        server.faults.append(Fault("watch=true", status=200, body=line))
        with pytest.raises(ApiError, match="500 error: etcd is gone"):
            await take(client, namespace, "1", 1)


@pytest.mark.parametrize(
    "line",
    [b"no JSON\n", b"[]\n", b"{}\n", b'{"type":"ADDED"}\n', b'{"type":"ADDED","object":7}\n', b"\xff\n"],
)
@real_time
async def test_lines_that_are_no_events(control_plane: Cluster, namespace: str, line: bytes) -> None:
    async with faulty(control_plane) as (server, client):
        server.faults.append(Fault("watch=true", status=200, body=line))
        with pytest.raises(ConnectionFailed, match=r"no watch event|no object"):
            await take(client, namespace, "1", 1)


@real_time
async def test_a_stream_that_breaks(control_plane: Cluster, namespace: str) -> None:
    async with faulty(control_plane) as (server, client):
        version = await version_now(client, namespace)
        await client.create(CONFIG_MAPS, config_map(namespace, "c"))
        server.faults.append(Fault("watch=true", cut_after=100))
        with pytest.raises(ConnectionFailed):
            await take(client, namespace, version, 1)
        assert names(await take(client, namespace, version, 1)) == [("ADDED", "c")], "it resumes from there"


@real_time
async def test_leaving_closes_the_connection(control_plane: Cluster, namespace: str) -> None:
    async with faulty(control_plane) as (server, client):
        version = await version_now(client, namespace)
        await client.create(CONFIG_MAPS, config_map(namespace, "c"))
        assert len(await take(client, namespace, version, 1)) == 1
        await until(lambda: not server.answering)
