"""Events: what becomes of repeated ones, and that a real API server takes them."""

from __future__ import annotations

import asyncio
import re
from datetime import UTC, datetime

import pytest

from kvnode.kube.correlation import Correlator, Recent, Subject
from kvnode.kube.events import BACKLOG, NORMAL, WARNING, EventRecorder
from kvnode.kube.objects import Object
from kvnode.kube.resources import EVENTS, NODES, VIRTUAL_MACHINE_INSTANCES
from tests.cluster.cluster import Cluster
from tests.kube.faults import Fault
from tests.kube.loops import real_time, until, virtual_time
from tests.kube.support import background, client_of, faulty, vmi


class Clock:
    """A clock that is set by hand."""

    seconds = 0.0

    def __call__(self) -> float:
        return self.seconds


def subject(name: str = "a", reason: str = "Started") -> Subject:
    return Subject("VirtualMachineInstance", "ns", name, f"u-{name}", NORMAL, reason)


def test_the_same_again_is_counted() -> None:
    correlator = Correlator(Clock())
    first, second = (correlator.correlate(subject(), "up") for _ in range(2))
    assert first is second
    assert first is not None
    assert (first.count, first.message) == (2, "up")
    assert correlator.correlate(subject(), "up again") is not first
    assert correlator.correlate(subject("b"), "up") is not first


def test_many_messages_of_one_reason_become_one() -> None:
    clock = Clock()
    correlator = Correlator(clock)
    found = [correlator.correlate(subject(), f"try {number}") for number in range(13)]
    assert len({id(one) for one in found}) == 11
    assert found[12] is found[10]
    assert found[12] is not None
    assert found[12].count == 3
    assert found[12].message == "(several events of this reason) try 12"
    clock.seconds = 700
    later = correlator.correlate(subject(), "try 14")
    assert later is not None
    assert later.message == "try 14"


def test_an_object_that_makes_too_many_is_not_listened_to() -> None:
    clock = Clock()
    correlator = Correlator(clock)
    assert all(correlator.correlate(subject(), "x") for _ in range(25))
    assert correlator.correlate(subject(reason="Other"), "x") is None
    assert correlator.correlate(subject("b"), "x") is not None
    clock.seconds = 301
    assert correlator.correlate(subject(), "x") is not None


def test_what_is_remembered_has_an_end() -> None:
    recent: Recent[int, str] = Recent(2)
    for number in (1, 2):
        recent.put(number, str(number))
    assert recent.get(1) == "1"
    recent.put(3, "3")
    assert (recent.get(2), recent.get(1), len(recent)) == (None, "1", 2)


@virtual_time
async def test_more_than_can_be_written_is_dropped() -> None:
    recorder = EventRecorder(None, "c")  # type: ignore[arg-type]
    for number in range(BACKLOG + 5):
        recorder.record(vmi("ns", f"v{number}"), NORMAL, "Started", "up")
    assert recorder.dropped == 5
    await recorder.flush(1)


async def events_of(client: object, namespace: str) -> list[Object]:
    return await client.list_all(EVENTS, namespace)  # type: ignore[attr-defined, no-any-return]


@pytest.mark.cluster
@real_time
async def test_as_a_user_sees_them(control_plane: Cluster, namespace: str) -> None:
    async with client_of(control_plane) as client:
        instance = await client.create(VIRTUAL_MACHINE_INSTANCES, vmi(namespace, "a"))
        recorder = EventRecorder(client, "virt-controller", "node1")
        async with background(recorder.run()):
            recorder.record(instance, NORMAL, "SuccessfulCreate", "Created the pod")
            await recorder.flush(60)
            for _ in range(4):
                recorder.record(instance, WARNING, "FailedCreate", "x" * 5000)
            await recorder.flush(60)
            recorder.record(instance, NORMAL, "SuccessfulCreate", "Created the pod")
            await recorder.flush(60)
        found = {event["reason"]: event for event in await events_of(client, namespace)}
        assert sorted(found) == ["FailedCreate", "SuccessfulCreate"]
        created = found["SuccessfulCreate"]
        assert (created["count"], created["type"], created["message"]) == (2, "Normal", "Created the pod")
        assert created["source"] == {"component": "virt-controller", "host": "node1"}
        assert created["involvedObject"]["uid"] == instance["metadata"]["uid"]
        assert created["involvedObject"]["kind"] == "VirtualMachineInstance"
        assert re.fullmatch(r"a\.[0-9a-f]+", created["metadata"]["name"])
        assert created["firstTimestamp"] <= created["lastTimestamp"]
        assert (found["FailedCreate"]["count"], len(found["FailedCreate"]["message"])) == (4, 1024)


@pytest.mark.cluster
@real_time
async def test_events_of_objects_without_namespace(control_plane: Cluster) -> None:
    async with client_of(control_plane) as client:
        node = await client.create(
            NODES, {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "lonely"}}
        )
        recorder = EventRecorder(client, "virt-controller")
        async with background(recorder.run()):
            recorder.record(node, NORMAL, "NodeUnresponsive", "no heartbeat")
            await recorder.flush(60)
        assert recorder.dropped == 0
        found = await client.list_all(EVENTS, "default", field_selector="involvedObject.name=lonely")
        assert [event["reason"] for event in found] == ["NodeUnresponsive"]


@pytest.mark.cluster
@real_time
async def test_recording_lives_through_faults(control_plane: Cluster, namespace: str) -> None:
    async with faulty(control_plane, timeout=2) as (server, client), client_of(control_plane) as user:
        instance = await user.create(VIRTUAL_MACHINE_INSTANCES, vmi(namespace, "a"))
        recorder = EventRecorder(client, "c")
        server.faults += [Fault("POST.*events", status=403), Fault("POST.*events", silence=True)]
        async with background(recorder.run()):
            for number in range(3):
                recorder.record(instance, NORMAL, "Started", f"message {number}")
            await recorder.flush(60)
            assert recorder.dropped == 1, "the one that was refused"
            events = {event["message"]: event for event in await events_of(user, namespace)}
            assert sorted(events) == ["message 1", "message 2"]
            event = events["message 2"]
            await user.delete(EVENTS, event["metadata"]["name"], namespace)
            recorder.record(instance, NORMAL, "Started", "message 2")
            await recorder.flush(60)
            again = {event["message"]: event for event in await events_of(user, namespace)}
            assert again["message 2"]["count"] == 1
        await asyncio.sleep(0)


@pytest.mark.cluster
@real_time
async def test_what_happens_while_the_server_is_away_is_told_later_and_once(
    control_plane: Cluster, namespace: str
) -> None:
    moments = iter([datetime(2024, 6, 1, 12, 0, second, tzinfo=UTC) for second in range(30)])
    async with faulty(control_plane) as (server, client):
        instance = await client.create(VIRTUAL_MACHINE_INSTANCES, vmi(namespace, "a"))
        recorder = EventRecorder(client, "c", now=lambda: next(moments))
        # Of the first the server hears, and its answer is lost; of the second it does not.
        server.faults += [
            Fault("POST.*events", drop=True, after=True),
            Fault("POST.*events", status=503),
            Fault("POST.*events", drop=True),
        ]
        async with background(recorder.run()):
            recorder.record(instance, NORMAL, "Started", "up")
            recorder.record(instance, WARNING, "Stopped", "down")
            await recorder.flush(60)
        assert recorder.dropped == 0
        found = {event["reason"]: event for event in await events_of(client, namespace)}
        assert len(await events_of(client, namespace)) == 2
        assert found["Started"]["lastTimestamp"] == "2024-06-01T12:00:00Z", "when it happened, not when told"
        assert found["Stopped"]["count"] == 1


@pytest.mark.cluster
@real_time
async def test_one_that_is_counted_while_it_waits(control_plane: Cluster, namespace: str) -> None:
    async with faulty(control_plane) as (server, client):
        instance = await client.create(VIRTUAL_MACHINE_INSTANCES, vmi(namespace, "a"))
        recorder = EventRecorder(client, "c")
        server.faults.append(Fault("POST.*events", drop=True, after=True))
        async with background(recorder.run()):
            recorder.record(instance, NORMAL, "Started", "up")
            await until(lambda: server.count("POST.*events"))
            recorder.record(instance, NORMAL, "Started", "up")
            await recorder.flush(60)
        [event] = await events_of(client, namespace)
        assert event["count"] == 2
