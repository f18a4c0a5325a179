"""Leader election: by a clock that jumps, on a server of the test's own; and on a real API server."""

from __future__ import annotations

import asyncio
import contextlib
import copy
from datetime import UTC, datetime
from itertools import pairwise
from typing import Any

import pytest

from kvnode.kube.errors import AlreadyExists, Conflict, ConnectionFailed, NotFound
from kvnode.kube.leader import LeaderElector, LeadershipLost, LeaseSettings
from kvnode.kube.objects import Object
from kvnode.kube.resources import LEASES, Resource
from tests.cluster.cluster import Cluster
from tests.kube.faults import Fault
from tests.kube.loops import now, real_time, settle, until, virtual_time
from tests.kube.support import client_of, faulty


class Leases:
    """A server of one Lease, with resource versions and faults."""

    def __init__(self) -> None:
        self.lease: Object | None = None
        self.version = 0
        self.away: set[str] = set()
        """Identities that cannot reach it."""
        self.hangs: set[str] = set()
        self.holders: list[str] = []

    def client(self, identity: str) -> Any:
        return _Client(self, identity)


class _Client:
    def __init__(self, leases: Leases, identity: str) -> None:
        self.leases = leases
        self.identity = identity

    async def _reach(self) -> None:
        await asyncio.sleep(0.01)
        if self.identity in self.leases.hangs:
            await asyncio.Event().wait()
        if self.identity in self.leases.away:
            raise ConnectionFailed("away")

    async def get(self, _resource: Resource, _name: str, _namespace: str) -> Object:
        await self._reach()
        if self.leases.lease is None:
            raise NotFound(404, "NotFound", "none")
        return copy.deepcopy(self.leases.lease)

    async def create(self, _resource: Resource, obj: Object) -> Object:
        await self._reach()
        if self.leases.lease is not None:
            raise AlreadyExists(409, "AlreadyExists", "is there")
        return self._store(obj)

    async def replace(self, _resource: Resource, obj: Object) -> Object:
        await self._reach()
        if self.leases.lease is None:
            raise NotFound(404, "NotFound", "none")
        if obj["metadata"]["resourceVersion"] != self.leases.lease["metadata"]["resourceVersion"]:
            raise Conflict(409, "Conflict", "changed")
        return self._store(obj)

    def _store(self, obj: Object) -> Object:
        self.leases.version += 1
        meta = {**obj["metadata"], "uid": "u", "resourceVersion": str(self.leases.version)}
        self.leases.lease = copy.deepcopy({**obj, "metadata": meta})
        holder = obj["spec"]["holderIdentity"]
        if self.leases.holders[-1:] != [holder]:
            self.leases.holders.append(holder)
        return copy.deepcopy(self.leases.lease)


class Candidate:
    """A process that leads when it may, and is never done."""

    def __init__(self, leases: Leases, identity: str, clock_error: float = 0.0) -> None:
        settings = LeaseSettings("kubevirt", "virt-controller", identity)
        self.elector = LeaderElector(
            leases.client(identity),
            settings,
            now=lambda: datetime.fromtimestamp(1e9 + clock_error + now(), UTC),
            random_unit=lambda: 0.5,
        )
        self.spans: list[list[float]] = []
        self.task = asyncio.ensure_future(self.elector.run(self.lead))

    async def lead(self) -> None:
        self.spans.append([now()])
        try:
            await asyncio.Event().wait()
        finally:
            self.spans[-1].append(now())

    @property
    def leads(self) -> bool:
        return bool(self.spans) and len(self.spans[-1]) == 1

    async def kill(self) -> None:
        """End it, Lease and all."""
        self.task.cancel()
        await asyncio.gather(self.task, return_exceptions=True)


@virtual_time
async def test_one_leads_and_the_other_waits() -> None:
    leases = Leases()
    one = Candidate(leases, "one")
    await asyncio.sleep(1)
    two = Candidate(leases, "two")
    await asyncio.sleep(300)
    assert (one.leads, two.leads) == (True, False)
    assert leases.lease is not None
    spec = leases.lease["spec"]
    assert (spec["holderIdentity"], spec["leaseDurationSeconds"], spec["leaseTransitions"]) == ("one", 15, 0)
    assert spec["acquireTime"] < spec["renewTime"]
    await one.kill()
    await two.kill()


@virtual_time
async def test_a_leader_that_ends_gives_the_lease_back() -> None:
    leases = Leases()
    one, two = Candidate(leases, "one"), Candidate(leases, "two")
    await asyncio.sleep(10)
    first, second = (one, two) if one.leads else (two, one)
    end = now()
    await first.kill()
    await asyncio.sleep(5)
    assert second.leads
    assert second.spans[0][0] - end < 3
    await second.kill()


@virtual_time
async def test_a_leader_that_is_cut_off_stops_before_another_starts() -> None:
    leases = Leases()
    one = Candidate(leases, "one")
    await asyncio.sleep(1)
    two = Candidate(leases, "two")
    await asyncio.sleep(30)
    cut = now()
    leases.away.add("one")
    await asyncio.sleep(40)
    with pytest.raises(LeadershipLost, match="kubevirt/virt-controller"):
        await one.task
    assert two.leads
    assert one.spans[0][1] <= cut + 10
    assert one.spans[0][1] < two.spans[0][0] <= cut + 15 + 2.5
    assert leases.lease is not None
    assert leases.lease["spec"]["leaseTransitions"] == 1
    await two.kill()


@virtual_time
async def test_a_call_that_hangs_counts_like_one_that_fails() -> None:
    leases = Leases()
    one = Candidate(leases, "one")
    await asyncio.sleep(30)
    cut = now()
    leases.hangs.add("one")
    with pytest.raises(LeadershipLost):
        await one.task
    assert one.spans[0][1] <= cut + 10


@virtual_time
async def test_a_short_fault_is_lived_through() -> None:
    leases = Leases()
    one = Candidate(leases, "one")
    await asyncio.sleep(30)
    leases.away.add("one")
    await asyncio.sleep(7)
    leases.away.clear()
    await asyncio.sleep(60)
    assert one.leads
    assert len(one.spans) == 1
    await one.kill()


@pytest.mark.parametrize("error", [-3600.0, 3600.0])
@virtual_time
async def test_another_machine_s_clock_does_not_matter(error: float) -> None:
    """By its own times the Lease looks an hour old, or fresh for an hour to come."""
    leases = Leases()
    one = Candidate(leases, "one", clock_error=error)
    await asyncio.sleep(5)
    two = Candidate(leases, "two")
    await asyncio.sleep(60)
    assert (one.leads, two.leads) == (True, False)
    leases.away.add("one")
    await asyncio.sleep(30)
    assert two.leads
    await asyncio.gather(one.task, return_exceptions=True)
    await two.kill()


@virtual_time
async def test_a_lease_that_somebody_else_took_is_not_fought_for() -> None:
    leases = Leases()
    one = Candidate(leases, "one")
    await asyncio.sleep(10)
    assert leases.lease is not None
    leases.lease["spec"]["holderIdentity"] = "thief"
    leases.lease["metadata"]["resourceVersion"] = "999"
    taken = now()
    with pytest.raises(LeadershipLost):
        await one.task
    assert now() - taken < 3
    assert leases.lease["spec"]["holderIdentity"] == "thief"


@virtual_time
@pytest.mark.parametrize("edit", ["shortened", "deleted"])
async def test_a_lease_that_somebody_edits_never_makes_two_lead(edit: str) -> None:
    """Each time just before the other looks."""
    leases = Leases()
    one = Candidate(leases, "one")
    await asyncio.sleep(1)
    two = Candidate(leases, "two")
    for number in range(300):
        await asyncio.sleep(0.37)
        if leases.lease is not None and edit == "shortened":
            leases.lease["spec"]["leaseDurationSeconds"] = 1
            leases.lease["metadata"]["resourceVersion"] = f"edited-{number}"
        elif number % 7 == 0:
            leases.lease = None
        for _ in range(10):
            await asyncio.sleep(0.01)
            assert not (one.leads and two.leads)
    assert one.leads or two.leads
    await one.kill()
    await two.kill()


@virtual_time
async def test_when_the_work_ends_or_fails_so_does_the_leader() -> None:
    async def done() -> None:
        await asyncio.sleep(1)

    async def failing() -> None:
        await asyncio.sleep(1)
        raise ValueError("broken")

    leases = Leases()
    settings = LeaseSettings("ns", "l", "me")
    await LeaderElector(leases.client("me"), settings).run(done)
    with pytest.raises(ValueError, match="broken"):
        await LeaderElector(leases.client("me"), settings).run(failing)
    assert leases.holders == ["me", "", "me", ""]


@virtual_time
async def test_work_that_clings_keeps_nobody_from_knowing_that_it_is_lost() -> None:
    freed = asyncio.Event()

    async def clings() -> None:
        while not freed.is_set():
            with contextlib.suppress(asyncio.CancelledError):
                await freed.wait()

    leases = Leases()
    task = asyncio.ensure_future(
        LeaderElector(leases.client("me"), LeaseSettings("ns", "l", "me")).run(clings)
    )
    await asyncio.sleep(20)
    cut = now()
    leases.away.add("me")
    with pytest.raises(LeadershipLost):
        await task
    assert now() - cut < 15
    freed.set()
    await settle()


@virtual_time
async def test_many_kills_never_two_at_once() -> None:
    leases = Leases()
    everyone: list[Candidate] = []
    alive = [Candidate(leases, f"c{number}") for number in range(2)]
    everyone += alive
    for number in range(10):
        await asyncio.sleep(20 + number)
        leader = next(one for one in alive if one.leads)
        leases.away.add(leader.elector._settings.identity)  # no giving back: as SIGKILL
        await leader.kill()
        alive = [one for one in alive if one is not leader]
        alive.append(Candidate(leases, f"n{number}"))
        everyone.append(alive[-1])
        await settle()
    await asyncio.sleep(20)
    for one in alive:
        await one.kill()
    spans = sorted(span for one in everyone for span in one.spans)
    assert len(spans) == 11
    for before, after in pairwise(spans):
        assert before[1] <= after[0]
        assert after[0] - before[1] < 15 + 2.5


@pytest.mark.parametrize(
    "times", [{"duration": 10.0}, {"renew_deadline": 2.0}, {"identity": ""}, {"retry_period": 0.0}]
)
def test_times_that_make_no_sense(times: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=r"must (fall|not be)"):
        LeaseSettings(**{"namespace": "n", "name": "l", "identity": "i", **times})


@pytest.mark.cluster
@real_time
async def test_on_a_real_server(control_plane: Cluster, namespace: str) -> None:
    order: list[str] = []

    def settings(identity: str) -> LeaseSettings:
        return LeaseSettings(namespace, "l", identity, duration=7, renew_deadline=5, retry_period=0.5)

    def lead(identity: str) -> Any:
        async def run() -> None:
            order.append(identity)
            await asyncio.Event().wait()

        return run

    async with faulty(control_plane, timeout=3) as (server, client), client_of(control_plane) as other:
        one = asyncio.ensure_future(LeaderElector(client, settings("one")).run(lead("one")))
        await until(lambda: order == ["one"])
        two = asyncio.ensure_future(LeaderElector(other, settings("two")).run(lead("two")))
        await asyncio.sleep(9)
        assert order == ["one"]
        server.faults.append(Fault("PUT", times=100, drop=True))
        with pytest.raises(LeadershipLost):
            await one
        await until(lambda: order == ["one", "two"])
        lease = await other.get(LEASES, "l", namespace)
        assert lease["spec"]["leaseTransitions"] == 1
        two.cancel()
        await asyncio.gather(two, return_exceptions=True)
        assert (await other.get(LEASES, "l", namespace))["spec"]["holderIdentity"] == ""
