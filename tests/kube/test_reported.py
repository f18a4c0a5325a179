"""What users ran into with clients of the API server; test ids name the report."""

from __future__ import annotations

import json
import re

import pytest

from kvnode.kube.informer import Informer
from kvnode.kube.resources import CONFIG_MAPS
from tests.cluster.cluster import Cluster
from tests.kube.faults import Fault
from tests.kube.loops import real_time, until
from tests.kube.support import background, client_of, config_map, faulty
from tests.reports import report

STATUS = b'{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"Expired","code":410,"message":"too old"}'
AS_EVENT = b'{"type":"ERROR","object":' + STATUS + b"}\n"


@report("B65")
@pytest.mark.cluster
@pytest.mark.parametrize(("status", "body"), [(410, STATUS), (200, AS_EVENT)], ids=["answer", "event"])
@real_time
async def test_a_place_that_is_gone_costs_no_deletion(
    control_plane: Cluster, namespace: str, status: int, body: bytes
) -> None:
    async with faulty(control_plane) as (server, client), client_of(control_plane) as other:
        for name in ("stays", "goes"):
            await other.create(CONFIG_MAPS, config_map(namespace, name))
        informer = Informer(client, CONFIG_MAPS, namespace=namespace)
        gone: list[str] = []
        informer.add_handler(lambda change: gone.append(change.key) if change.deleted else None)
        async with background(informer.run()):
            await informer.wait_synced()
            await until(lambda: server.count("watch=true"))
            server.up = False
            server.cut()
            await other.delete(CONFIG_MAPS, "goes", namespace)
            version = int((await other.get(CONFIG_MAPS, "stays", namespace))["metadata"]["resourceVersion"])
            server.faults.append(Fault("watch=true", status=status, body=body))
            server.up = True
            await until(lambda: gone == [f"{namespace}/goes"])
            assert list(informer.store) == [f"{namespace}/stays"]
            await until(lambda: server.count("watch=true") >= 3)
        last = [one for one in server.requests if "watch=true" in one][-1]
        found = re.search(r"resourceVersion=(\d+)", last)
        assert found
        assert int(found[1]) > version, "it must go on from the list, not from an object's own version"
        assert "allowWatchBookmarks=true" in last


@report("B65")
@pytest.mark.cluster
@real_time
async def test_a_bookmark_is_where_the_next_watch_begins(control_plane: Cluster, namespace: str) -> None:
    """Of a kind that nothing happens to, the list's version would be too old some day."""
    async with faulty(control_plane) as (server, client), client_of(control_plane) as other:
        await other.create(CONFIG_MAPS, config_map(namespace, "stays"))
        informer = Informer(client, CONFIG_MAPS, namespace=namespace)
        told: list[str] = []
        informer.add_handler(lambda change: told.append(change.key))
        later = await other.create(CONFIG_MAPS, config_map("default", f"elsewhere-{namespace}"))
        version = later["metadata"]["resourceVersion"]
        await other.delete(CONFIG_MAPS, f"elsewhere-{namespace}", "default")
        bookmark = {
            "type": "BOOKMARK",
            "object": {"kind": "ConfigMap", "apiVersion": "v1", "metadata": {"resourceVersion": version}},
        }
        line = json.dumps(bookmark).encode() + b"\n"
        server.faults.append(Fault("watch=true", status=200, body=line))
        async with background(informer.run()):
            await until(lambda: server.count("watch=true") >= 2)
            assert told == [f"{namespace}/stays"]
            assert list(informer.store) == [f"{namespace}/stays"]
        second = [one for one in server.requests if "watch=true" in one][1]
        assert f"resourceVersion={version}&" in f"{second}&"
        assert server.count("limit=") == 1, "it is not listed again"
