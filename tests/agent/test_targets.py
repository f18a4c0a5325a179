"""VMIs that are to come to the node from another."""

from __future__ import annotations

import os
from typing import Any

import pytest

from kvnode.agent.targets import Targets
from kvnode.kube.client import PatchType
from kvnode.kube.informer import Change
from kvnode.kube.objects import Object
from kvnode.kube.resources import EVENTS, VIRTUAL_MACHINE_INSTANCES
from kvnode.kube.store import entry_of
from tests.agent.build import KEY, vmi
from tests.agent.lab import lab, until
from tests.agent.node import configuration, eventually
from tests.cluster.cluster import Cluster
from tests.kube.loops import minutes
from tests.kube.support import vmi as new_vmi

__all__ = ["configuration"]


class Recorder:
    """Keeps what was told."""

    def __init__(self) -> None:
        self.told: list[tuple[str, str, str]] = []

    def event(self, _vmi: object, kind: str, reason: str, message: str) -> None:
        self.told.append((kind, reason, message))


@pytest.fixture
def recorder() -> Recorder:
    return Recorder()


@pytest.fixture
def targets(recorder: Recorder) -> Targets:
    return Targets("node02", recorder)


def arriving(phase: str = "Running", **migration: Any) -> Change:
    one = vmi(phase, status={"migrationState": {"migrationUid": "m1", **migration}})
    return Change(KEY, None, entry_of(one))


def test_its_owner_is_told_once_for_each_migration(targets: Targets, recorder: Recorder) -> None:
    for migration in ("m1", "m1", "m2", "m2"):
        targets.changed(arriving(migrationUid=migration))
    assert len(recorder.told) == 2
    kind, reason, message = recorder.told[0]
    assert (kind, reason) == ("Warning", "SyncFailed")
    assert "node02" in message


@pytest.mark.parametrize(
    "ended", [{"endTimestamp": "2024-06-01T11:00:00Z"}, {"completed": True}, {"failed": True}]
)
def test_what_has_ended_is_told_of_no_more_and_kept_no_longer(
    targets: Targets, recorder: Recorder, ended: dict[str, Any]
) -> None:
    targets.changed(arriving())
    assert len(targets) == 1
    targets.changed(arriving(**ended))
    assert len(targets) == 0
    assert len(recorder.told) == 1


def test_one_that_is_final_or_here_does_not_come(targets: Targets, recorder: Recorder) -> None:
    targets.changed(arriving("Failed"))
    Targets("node01", recorder).changed(arriving())
    assert recorder.told == []


def test_one_that_is_gone_is_forgotten(targets: Targets) -> None:
    came = arriving()
    targets.changed(came)
    targets.changed(Change(KEY, came._after, None))
    assert len(targets) == 0


@pytest.mark.cluster
@pytest.mark.skipif(os.geteuid() != 0, reason="launchers have roots of their own")
@minutes(3)
async def test_through_the_agent(control_plane: Cluster, namespace: str) -> None:
    """The VMI's own node goes on with it; this one writes nothing but the Event."""
    async with lab(control_plane, namespace) as node, node.agent() as agent:
        obj = new_vmi(namespace, "moving")
        obj["metadata"]["labels"] = {"kubevirt.io/nodeName": "another"}
        obj["status"] = {"phase": "Running", "nodeName": "another"}
        await node.client.create(VIRTUAL_MACHINE_INSTANCES, obj)
        to_here = {"metadata": {"labels": {"kubevirt.io/migrationTargetNodeName": node.name}}}
        await node.client.patch(VIRTUAL_MACHINE_INSTANCES, "moving", namespace, to_here, PatchType.MERGE)

        async def told() -> list[Object]:
            found = await node.client.list_all(EVENTS, namespace)
            return [one for one in found if node.name in one["message"]]

        (event,) = await eventually(told)
        assert (event["involvedObject"]["name"], event["reason"], event["type"]) == (
            "moving",
            "SyncFailed",
            "Warning",
        )
        assert f"{namespace}/moving" in agent.arriving.store
        assert f"{namespace}/moving" not in agent.vmis.store
        await until(lambda: len(node.history.versions) == 2)
        other = await node.run()
        assert len([one for one in node.history.versions if one["metadata"]["name"] == "moving"]) == 2
        assert not {"kill", "shutdown"} & set(other.calls)
