"""Calls, to a real API server."""

from __future__ import annotations

import asyncio

import pytest

from kvnode.kube.client import Client, PatchType
from kvnode.kube.config import Configuration
from kvnode.kube.errors import (
    AlreadyExists,
    ApiError,
    Conflict,
    ConnectionFailed,
    DeadlineExceeded,
    Expired,
    Invalid,
    NotFound,
    TooManyRequests,
)
from kvnode.kube.objects import metadata, uid_of
from kvnode.kube.ratelimit import TokenBucket
from kvnode.kube.resources import (
    CONFIG_MAPS,
    NAMESPACES,
    PODS,
    VIRTUAL_MACHINE_INSTANCES,
    VIRTUAL_MACHINES,
)
from tests.cluster.cluster import Cluster
from tests.kube.faults import Fault
from tests.kube.loops import now, real_time
from tests.kube.support import client_of, config_map, faulty, vm, vmi

pytestmark = pytest.mark.cluster


@real_time
async def test_an_object_s_life(control_plane: Cluster, namespace: str) -> None:
    async with client_of(control_plane) as client:
        made = await client.create(CONFIG_MAPS, config_map(namespace, "c", a="1"))
        assert uid_of(made)
        made["data"]["a"] = "2"
        changed = await client.replace(CONFIG_MAPS, made)
        assert (await client.get(CONFIG_MAPS, "c", namespace))["data"] == {"a": "2"}
        with pytest.raises(Conflict):
            await client.replace(CONFIG_MAPS, made)
        with pytest.raises(AlreadyExists):
            await client.create(CONFIG_MAPS, config_map(namespace, "c"))
        with pytest.raises(Conflict):
            await client.delete(CONFIG_MAPS, "c", namespace, uid="another")
        await client.delete(CONFIG_MAPS, "c", namespace, uid=uid_of(changed))
        with pytest.raises(NotFound) as caught:
            await client.get(CONFIG_MAPS, "c", namespace)
        assert caught.value.reason == "NotFound"
        assert '"c" not found' in str(caught.value)


@real_time
async def test_every_way_to_patch(control_plane: Cluster, namespace: str) -> None:
    async with client_of(control_plane) as client:
        await client.create(CONFIG_MAPS, config_map(namespace, "c", a="1", b="1"))

        operations = [
            {"op": "test", "path": "/data/a", "value": "1"},
            {"op": "replace", "path": "/data/a", "value": "2"},
        ]
        assert (await client.patch(CONFIG_MAPS, "c", namespace, operations))["data"]["a"] == "2"
        with pytest.raises(Invalid):
            await client.patch(CONFIG_MAPS, "c", namespace, operations)
        merged = await client.patch(CONFIG_MAPS, "c", namespace, {"data": {"b": None}}, PatchType.MERGE)
        assert merged["data"] == {"a": "2"}
        patch = {"metadata": {"labels": {"x": "y"}}}
        labelled = await client.patch(CONFIG_MAPS, "c", namespace, patch, PatchType.STRATEGIC)
        assert labelled["metadata"]["labels"] == {"x": "y"}

        wanted = config_map(namespace, "c", a="applied")
        with pytest.raises(Conflict, match="conflict"):
            await client.patch(CONFIG_MAPS, "c", namespace, wanted, PatchType.APPLY, field_manager="one")
        applied = await client.patch(
            CONFIG_MAPS, "c", namespace, wanted, PatchType.APPLY, field_manager="one", force=True
        )
        assert applied["data"] == {"a": "applied"}


@real_time
async def test_a_virtual_machine_s_status_is_a_thing_of_its_own(
    control_plane: Cluster, namespace: str
) -> None:
    async with client_of(control_plane) as client:
        made = await client.create(VIRTUAL_MACHINES, {**vm(namespace, "a"), "status": {"created": True}})
        assert "status" not in made
        status = {**made, "status": {"printableStatus": "Stopped"}, "spec": {**made["spec"], "running": True}}
        written = await client.replace(VIRTUAL_MACHINES, status, subresource="status")
        assert written["status"] == {"printableStatus": "Stopped"}
        assert "running" not in written["spec"]
        operations = [{"op": "add", "path": "/status/ready", "value": True}]
        patched = await client.patch(VIRTUAL_MACHINES, "a", namespace, operations, subresource="status")
        assert patched["status"] == {"printableStatus": "Stopped", "ready": True}
        ignored = await client.replace(VIRTUAL_MACHINES, {**patched, "status": {}})
        assert ignored["status"] == patched["status"]


@real_time
async def test_an_instance_s_status_is_written_with_it(control_plane: Cluster, namespace: str) -> None:
    async with client_of(control_plane) as client:
        made = await client.create(VIRTUAL_MACHINE_INSTANCES, vmi(namespace, "a"))
        written = await client.replace(VIRTUAL_MACHINE_INSTANCES, {**made, "status": {"phase": "Pending"}})
        assert written["status"] == {"phase": "Pending"}


@real_time
async def test_lists_come_in_pages(control_plane: Cluster, namespace: str) -> None:
    async with client_of(control_plane) as client:
        for number in range(5):
            obj = config_map(namespace, f"c{number}")
            obj["metadata"]["labels"] = {"odd": str(number % 2)}
            await client.create(CONFIG_MAPS, obj)
        pages = [page async for page in client.pages(CONFIG_MAPS, namespace, limit=2)]
        assert [len(page["items"]) for page in pages] == [2, 2, 1]
        assert len({metadata(page)["resourceVersion"] for page in pages}) == 1
        odd = await client.list_all(CONFIG_MAPS, namespace, label_selector="odd=1")
        assert [obj["metadata"]["name"] for obj in odd] == ["c1", "c3"]
        one = await client.list_all(
            CONFIG_MAPS, field_selector=f"metadata.name=c4,metadata.namespace={namespace}"
        )
        assert [obj["metadata"]["name"] for obj in one] == ["c4"]
        assert namespace in {obj["metadata"]["name"] for obj in await client.list_all(NAMESPACES)}


@real_time
async def test_a_continue_token_that_is_too_old(control_plane: Cluster, namespace: str) -> None:
    gone = b'{"kind":"Status","code":410,"reason":"Expired","message":"The provided continue parameter is too old"}'
    async with faulty(control_plane) as (server, client):
        for number in range(3):
            await client.create(CONFIG_MAPS, config_map(namespace, f"c{number}"))
        server.faults.append(Fault("continue=", status=410, body=gone))
        with pytest.raises(Expired, match="too old"):
            [page async for page in client.pages(CONFIG_MAPS, namespace, limit=2)]


@real_time
async def test_a_busy_server_is_given_the_time_it_asks_for(control_plane: Cluster) -> None:
    async with faulty(control_plane, patience=3) as (server, client):
        server.faults.append(Fault("GET", times=2, status=429, headers={"Retry-After": "1"}))
        began = now()
        await client.get(NAMESPACES, "default")
        assert now() - began >= 2
        server.faults.append(Fault("GET", times=9, status=429, headers={"Retry-After": "1"}))
        with pytest.raises(TooManyRequests):
            await client.get(NAMESPACES, "default")
        assert server.count("namespaces/default") == 3 + 4


@real_time
async def test_a_failing_server_is_asked_again_only_if_it_says_so(control_plane: Cluster) -> None:
    async with faulty(control_plane) as (server, client):
        server.faults.append(Fault("GET", status=503, body=b"no healthy upstream"))
        with pytest.raises(ApiError, match="503 error: no healthy upstream"):
            await client.get(NAMESPACES, "default")
        server.faults.append(Fault("GET", status=503, headers={"Retry-After": "1"}))
        assert await client.get(NAMESPACES, "default")


@real_time
async def test_no_answer_in_time(control_plane: Cluster, namespace: str) -> None:
    async with faulty(control_plane) as (server, client):
        server.faults.append(Fault("GET", silence=True))
        async with Client(server.configuration, timeout=0.5) as impatient:
            with pytest.raises(
                DeadlineExceeded, match=r"GET /api/v1/namespaces/default: no answer within 0\.5 s"
            ):
                await impatient.get(NAMESPACES, "default")
        server.faults.append(Fault("POST", cut_after=20))
        with pytest.raises(ConnectionFailed):
            await client.create(CONFIG_MAPS, config_map(namespace, "cut"))
        assert await client.get(CONFIG_MAPS, "cut", namespace), "the answer was lost, not the write"


@real_time
async def test_a_connection_that_breaks(control_plane: Cluster, namespace: str) -> None:
    async with faulty(control_plane) as (server, client):
        server.faults.append(Fault("POST", drop=True))
        with pytest.raises(ConnectionFailed):
            await client.create(CONFIG_MAPS, config_map(namespace, "never"))
        server.faults.append(Fault("POST", drop=True, after=True))
        with pytest.raises(ConnectionFailed):
            await client.create(CONFIG_MAPS, config_map(namespace, "made"))
        assert [obj["metadata"]["name"] for obj in await client.list_all(CONFIG_MAPS, namespace)] == ["made"]


@real_time
async def test_nobody_listens() -> None:
    async with Client(Configuration("http://127.0.0.1:1")) as client:
        with pytest.raises(ConnectionFailed, match="GET /api/v1/namespaces/x"):
            await client.get(NAMESPACES, "x")


@pytest.mark.parametrize("body", [b"<html>", b"[]", b'"x"', b"\xff", b"null"])
@real_time
async def test_answers_that_are_none(control_plane: Cluster, body: bytes) -> None:
    async with faulty(control_plane) as (server, client):
        server.faults.append(Fault("GET", status=200, body=body))
        with pytest.raises(ConnectionFailed, match="the answer is no"):
            await client.get(NAMESPACES, "default")
        server.faults.append(Fault("GET", status=500, body=body))
        with pytest.raises(ApiError):
            await client.get(NAMESPACES, "default")


@real_time
async def test_redirects_are_not_followed(control_plane: Cluster) -> None:
    async with faulty(control_plane) as (server, client):
        server.faults.append(Fault("GET", status=302, headers={"Location": "http://127.0.0.1:1/"}))
        with pytest.raises(ApiError):
            await client.get(NAMESPACES, "default")


@real_time
async def test_requests_wait_for_their_turn(control_plane: Cluster) -> None:
    async with client_of(control_plane, limiter=TokenBucket(20, 5)) as client:
        began = now()
        await asyncio.gather(*(client.get(NAMESPACES, "default") for _ in range(15)))
        assert now() - began >= 0.5


@real_time
async def test_a_kind_that_is_not_served(control_plane: Cluster) -> None:
    from kvnode.kube.resources import DATA_VOLUMES  # noqa: PLC0415

    async with client_of(control_plane) as client:
        with pytest.raises(NotFound):
            await client.list_all(DATA_VOLUMES)


@pytest.mark.parametrize("name", ["..", "a/b", "../../secrets/x"])
@real_time
async def test_a_name_is_no_path(control_plane: Cluster, name: str) -> None:
    async with client_of(control_plane) as client:
        with pytest.raises(ValueError, match="is no name"):
            await client.get(PODS, name, "default")
