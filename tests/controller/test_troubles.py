"""Watches cut and late, answers lost, others who write: in the end all is as after a calm start."""

from __future__ import annotations

import asyncio
import re
from collections import Counter
from typing import Any

import pytest

from kvnode.controller.manager import Manager
from kvnode.kube.client import Client, PatchType
from kvnode.kube.errors import ApiError
from kvnode.kube.informer import Informer
from kvnode.kube.objects import Object
from kvnode.kube.resources import (
    CONTROLLER_REVISIONS,
    PODS,
    VIRTUAL_MACHINE_INSTANCES,
    VIRTUAL_MACHINES,
    Resource,
)
from tests.cluster.cluster import Cluster
from tests.cluster.fixtures import make_namespace
from tests.controller.standin import StandIn
from tests.controller.test_manager import Played, eventually, machine
from tests.controller.test_process import ready
from tests.kube.faults import Fault, FaultyServer
from tests.kube.loops import minutes
from tests.kube.support import background, client_of, faulty
from tests.reference.common import differences

pytestmark = pytest.mark.cluster

COUNT = 6
WATCH = r"[?&]watch=true"
TOUCHED = "example.test/touched"
EVER = 1_000_000
KINDS = (VIRTUAL_MACHINES, VIRTUAL_MACHINE_INSTANCES, PODS, CONTROLLER_REVISIONS)
_ITS_OWN = {"uid", "resourceVersion", "managedFields", "creationTimestamp", "selfLink", TOUCHED}
_UUID = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")
_TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ")
_TIMEOUT = re.compile(r"^(2[4-9]|3[0-5])\ds$")
"""Drawn anew for each pod."""
_ADDRESS = re.compile(r"10\.244\.\d+\.\d+")


def common(value: Any, name: str, namespace: str) -> Any:
    """What is the same of all machines that started alike."""
    if isinstance(value, dict):
        return {
            common(key, name, namespace): common(item, name, namespace)
            for key, item in value.items()
            if key not in _ITS_OWN
        }
    if isinstance(value, list):
        return [common(item, name, namespace) for item in value]
    if not isinstance(value, str):
        return value
    text = re.sub(rf"virt-launcher-{name}-[a-z0-9]{{5}}\b", "POD", value)
    for pattern, word in ((_UUID, "UUID"), (_TIME, "TIME"), (_ADDRESS, "ADDRESS"), (_TIMEOUT, "TIMEOUT")):
        text = pattern.sub(word, text)
    return re.sub(rf"\b{name}\b", "NAME", text.replace(namespace, "NAMESPACE"))


async def end_of(client: Client, namespace: str, name: str) -> dict[str, list[Any]]:
    """All objects of one machine."""
    found: dict[str, list[Any]] = {}
    for resource in KINDS:
        mine = [one for one in await client.list_all(resource, namespace) if belongs(one, name)]
        for one in mine:
            one["metadata"].pop("generation", None)  # another's touch is none of the machine's
            order_conditions(one)
        found[resource.plural] = [common(one, name, namespace) for one in mine]
    return found


def belongs(obj: Object, name: str) -> bool:
    owners = [one["name"] for one in obj["metadata"].get("ownerReferences") or ()]
    return obj["metadata"]["name"] == name or name in owners


def order_conditions(obj: Object) -> None:
    """Their order tells only in which order things were seen."""
    for status in (obj.get("status") or {},):
        if "conditions" in status:
            status["conditions"].sort(key=lambda one: one["type"])


async def started(
    cluster: Cluster, namespace: str, client: Client, names: list[str], trouble: Any
) -> StandIn:
    """Start machines with a controller that has this client, until all are Ready and nothing moves any more."""
    async with client_of(cluster) as user:
        nodes = StandIn(user, namespace)
        async with background(nodes.run(), Manager(client, namespace=namespace).run(), trouble):
            for name in names:
                await user.create(VIRTUAL_MACHINES, machine(namespace, name))
            while len(await ready(user, namespace)) < len(names):
                await asyncio.sleep(0.2)
            before: list[str] = []
            while before != (before := await versions(user, namespace)):
                await asyncio.sleep(3)
    assert nodes.twice() == []
    return nodes


async def versions(client: Client, namespace: str) -> list[str]:
    """Those of all objects."""
    return [
        str(one["metadata"]["resourceVersion"])
        for resource in KINDS
        for one in await client.list_all(resource, namespace)
    ]


async def nothing() -> None:
    """No trouble."""


async def check_the_same(cluster: Cluster, namespace: str, names: list[str]) -> None:
    """The machines' objects are as those of one that nothing troubled."""
    calm = make_namespace(cluster)
    async with client_of(cluster) as user:
        await started(cluster, calm, user, ["calm"], nothing())
        expected = await end_of(user, calm, "calm")
        assert [len(expected[one.plural]) for one in KINDS] == [1, 1, 1, 1]
        for name in names:
            assert differences(expected, await end_of(user, namespace, name)) == []


class Refusals(Client):
    """A client that keeps count of what is refused as old."""

    old = 0

    async def call(self, method: str, path: str, **more: Any) -> Object:
        """Make a call."""
        try:
            return await super().call(method, path, **more)
        except ApiError as error:
            self.old += error.status in (409, 422)
            raise


NAMES = [f"vm{number}" for number in range(COUNT)]


@minutes(3)
async def test_watches_that_are_cut(control_plane: Cluster, namespace: str) -> None:
    async with faulty(control_plane) as (server, client):
        cuts = 0

        async def cutting() -> None:
            nonlocal cuts
            while True:
                await asyncio.sleep(0.4)
                cuts += server.cut(WATCH)

        await started(control_plane, namespace, client, NAMES, cutting())
    assert cuts > COUNT
    await check_the_same(control_plane, namespace, NAMES)


@pytest.mark.parametrize("observed", [True, False], ids=["own-writes-known", "own-writes-late-too"])
def test_watches_that_are_late(
    control_plane: Cluster, namespace: str, monkeypatch: pytest.MonkeyPatch, observed: bool
) -> None:
    """Caches are a second old; where not even one's own writes are known at once, what was asked for is."""
    if not observed:
        monkeypatch.setattr(Informer, "observe", lambda *_: False)

    @minutes(3)
    async def run() -> None:
        async with (
            FaultyServer(control_plane).running() as server,
            Refusals(server.configuration) as client,
        ):
            server.faults.append(Fault(WATCH, times=EVER, lag=1.0))
            await started(control_plane, namespace, client, NAMES, nothing())
            assert client.old <= 2 * COUNT  # what the nodes wrote, which no cache has shown yet
        await check_the_same(control_plane, namespace, NAMES)

    run()


@minutes(3)
async def test_answers_that_are_lost(control_plane: Cluster, namespace: str) -> None:
    """The first writes of each kind are done and nobody is told so, by no watch for half a second either."""
    async with faulty(control_plane) as (server, client):
        server.faults.append(Fault(WATCH, times=EVER, lag=0.5))
        writes = ("virtualmachines/vm", "virtualmachineinstances/vm", "pods/virt-launcher-vm", "revisions$")
        lost = [
            Fault(rf"^(POST|PUT|PATCH) .*{words}", times=2, drop=True, after=True)
            for words in (*writes, "virtualmachineinstances$", "pods$")
        ]
        server.faults += lost
        await started(control_plane, namespace, client, NAMES, nothing())
        assert sum(one.times for one in lost) == 0
    await check_the_same(control_plane, namespace, NAMES)


class Meddler:
    """Touches every object just before the controllers write it, so that a write succeeds at its third try."""

    def __init__(self, server: FaultyServer, user: Client) -> None:
        self._user = user
        self._tries: Counter[str] = Counter()
        self.touched: set[tuple[Resource, str, str]] = set()
        server.before = self.touch

    async def touch(self, request: str) -> None:
        method, _, path = request.partition(" ")
        found = re.search(r"/([^/]+)/(virtualmachines|virtualmachineinstances|pods)/([^/?]+)", path)
        if method not in ("PUT", "PATCH") or not found:
            return
        self._tries[request] += 1
        if self._tries[request] % 3 == 0:
            return
        namespace, plural, name = found.groups()
        resource = next(one for one in KINDS if one.plural == plural)
        words = {"metadata": {"annotations": {TOUCHED: f"{method} {self._tries[request]}"}}}
        await self._user.patch(resource, name, namespace, words, PatchType.MERGE)
        self.touched.add((resource, namespace, name))


@minutes(3)
async def test_others_who_write_first(control_plane: Cluster, namespace: str) -> None:
    """Before every write of the controllers another writes: nothing of theirs is lost, and nothing of ours."""
    async with (
        FaultyServer(control_plane).running() as server,
        Refusals(server.configuration) as client,
        client_of(control_plane) as user,
    ):
        meddler = Meddler(server, user)
        await started(control_plane, namespace, client, NAMES, nothing())
        assert client.old >= 2 * 3 * COUNT  # the machine, its status, its instance
        assert len(meddler.touched) == 3 * COUNT
        for resource, where, name in meddler.touched:
            found = await user.get(resource, name, where)
            assert TOUCHED in (found["metadata"].get("annotations") or {}), f"{resource.plural} {name}"
    await check_the_same(control_plane, namespace, NAMES)


@minutes(3)
async def test_a_crash_over_whose_deletion_the_leader_dies(control_plane: Cluster, namespace: str) -> None:
    """The instance is deleted, and nobody writes anything any more: who leads next starts the machine again."""
    async with (
        FaultyServer(control_plane).running() as server,
        Client(server.configuration) as client,
        client_of(control_plane) as user,
        background(StandIn(user, namespace).run()),
    ):
        played = Played(user, namespace, "crashes")

        async def uid() -> str:
            return str((await user.get(VIRTUAL_MACHINE_INSTANCES, "crashes", namespace))["metadata"]["uid"])

        async with background(Manager(client, namespace=namespace).run()):
            await user.create(VIRTUAL_MACHINES, machine(namespace, "crashes", "RerunOnFailure"))
            await played.vm("Running", ready=True)
            before, deleted = await uid(), asyncio.Event()

            async def die(request: str) -> None:
                if re.search(r"^DELETE .*/virtualmachineinstances/crashes", request):
                    server.up = False  # whatever else is asked
                    deleted.set()

            server.before = die
            server.faults.append(Fault(r"^DELETE .*/virtualmachineinstances/", drop=True, after=True))
            await played.become("Failed")
            await asyncio.wait_for(deleted.wait(), 60)

        async def anew() -> bool:
            return await uid() != before

        async with background(Manager(user, namespace=namespace).run()):
            await eventually(anew, 60)
            await played.vm("Running", ready=True)
