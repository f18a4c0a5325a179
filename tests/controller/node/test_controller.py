"""Nodes whose agent is silent."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from kvnode.controller.node import NodeController
from kvnode.controller.node.controller import RECHECK, is_alive, is_silent
from kvnode.controller.wiring import SOON, NodeHandlers
from kvnode.kube.informer import Change
from kvnode.kube.objects import Object
from kvnode.kube.resources import NODES, PODS, VIRTUAL_MACHINE_INSTANCES
from kvnode.kube.store import entry_of
from tests.controller.objects import calls, deleting, pod, vmi
from tests.reference.controllers import NOW, Scene, with_times

HEARTBEAT = "kubevirt.io/heartbeat"
SCHEDULABLE = "kubevirt.io/schedulable"


def node(heartbeat: str | None = "<now-301s>", schedulable: str = "true") -> Object:
    annotations = {} if heartbeat is None else {HEARTBEAT: heartbeat}
    labels = {SCHEDULABLE: schedulable}
    found: Object = with_times(
        {
            "apiVersion": "v1",
            "kind": "Node",
            "metadata": {"name": "node01", "uid": "n", "annotations": annotations, "labels": labels},
        }
    )
    return found


def on_node(phase: str = "Running", name: str = "testvm") -> Object:
    made = vmi(phase, nodeName="node01")
    made["metadata"] |= {"name": name, "uid": f"{name}-uid"}
    return made


class Look:
    """One pass over node01."""

    def __init__(
        self, found: Object | None, *vmis: Object, pods: tuple[Object, ...] = (), **given: Any
    ) -> None:
        self.scene = Scene(given)
        if found is not None:
            self.scene.add(NODES, found)
        for one in vmis:
            self.scene.add(VIRTUAL_MACHINE_INSTANCES, with_times(one))
        for one in pods:
            self.scene.add(PODS, with_times(one))
        controller = NodeController(self.scene.world)
        self.queue = self.scene.queue(controller.reconcile, "node01")
        self.made = self.scene.server.calls
        self.calls = calls({"actions": self.made})
        self.events = [(one["reason"], one["object"]) for one in self.scene.events.seen]


def pod_of(name: str = "testvm", phase: str = "Running", **more: Any) -> Object:
    owner = {"kind": "VirtualMachineInstance", "uid": f"{name}-uid", "controller": True}
    return pod(phase, ownerReferences=[owner], **more)


@pytest.mark.parametrize(
    ("heartbeat", "silent"),
    [
        ("<now>", False),
        ("<now-300s>", False),
        ("<now-301s>", True),
        ("<now+600s>", False),
        (None, False),
        ("yesterday", False),
        ("", False),
        ("2020-01-01T00:00:00+02:00", True),
        ("2020-01-01T00:00:00", True),
    ],
)
def test_five_minutes_without_a_sign_of_life(heartbeat: str | None, silent: bool) -> None:
    assert is_silent(node(heartbeat), NOW) is silent


def test_a_node_that_is_gone_is_silent() -> None:
    assert is_silent(None, NOW)
    assert not is_silent(node("<now>"), NOW + timedelta(minutes=5))


def test_a_node_that_lives_is_looked_at_again() -> None:
    look = Look(node("<now-60s>"), on_node())
    assert look.calls == []
    assert look.queue["addedAfterSeconds"] == RECHECK


def test_no_more_vmis_are_given_to_a_silent_one() -> None:
    look = Look(node())
    assert look.calls == ["patch nodes"]
    assert look.made[0]["payload"] == {"metadata": {"labels": {SCHEDULABLE: "false"}}}
    assert look.events == [("NodeUnresponsive", "Node/node01")]
    assert look.queue["addedAfterSeconds"] == RECHECK
    assert Look(node(schedulable="false")).calls == []


@pytest.mark.parametrize("found", [node(schedulable="false"), None], ids=["silent", "gone"])
def test_a_vmi_without_a_pod_has_failed(found: Object | None) -> None:
    ended = (on_node("Succeeded", "c"), on_node("Failed", "d"))
    look = Look(found, on_node("Running", "a"), on_node("Scheduled", "b"), *ended)
    assert [one["name"] for one in look.made] == ["a", "b"]
    for one, phase in zip(look.made, ("Running", "Scheduled"), strict=True):
        assert one["payload"] == [
            {"op": "test", "path": "/status/phase", "value": phase},
            {"op": "replace", "path": "/status/phase", "value": "Failed"},
            {"op": "add", "path": "/status/reason", "value": "NodeUnresponsive"},
        ]
    assert look.events == [
        ("NodeUnresponsive", "VirtualMachineInstance/a"),
        ("NodeUnresponsive", "VirtualMachineInstance/b"),
    ]
    assert ("addedAfterSeconds" in look.queue) is (found is not None)


def ended(obj: Object) -> Object:
    for one in obj["status"]["containerStatuses"]:
        one["state"] = {"terminated": {"exitCode": 0}}
    return obj


@pytest.mark.parametrize(
    ("obj", "alive"),
    [
        (pod_of(), True),
        (pod_of(phase="Pending"), True),
        (deleting(pod_of()), True),
        (ended(deleting(pod_of())), False),
        (pod_of(phase="Failed"), False),
        (pod_of(phase="Succeeded"), False),
        (pod_of(node="node02"), False),
        (pod_of("another"), False),
        (None, False),
    ],
)
def test_a_vmi_whose_pod_may_run_is_left_alone(obj: Object | None, alive: bool) -> None:
    look = Look(node(schedulable="false"), on_node(), pods=() if obj is None else (obj,))
    assert (look.calls == []) is alive


def test_a_pod_without_container_statuses_may_run() -> None:
    assert is_alive({"status": {"phase": "Running"}})


def test_vmis_of_other_nodes_are_not_touched() -> None:
    elsewhere = vmi(nodeName="node02")
    assert Look(None, elsewhere, vmi("Pending")).calls == []


def test_a_vmi_that_went_on_meanwhile_is_looked_at_again() -> None:
    look = Scene({})
    look.add(VIRTUAL_MACHINE_INSTANCES, with_times(on_node("Scheduled")))
    look.server.put(VIRTUAL_MACHINE_INSTANCES, with_times(on_node("Succeeded")))
    assert look.queue(NodeController(look.world).reconcile, "node01")["result"] == "rateLimited"
    (kept,) = look.server.objects.values()
    assert kept["status"]["phase"] == "Succeeded"


def test_a_vmi_that_is_gone_holds_nothing_up() -> None:
    scene = Scene({})
    scene.add(VIRTUAL_MACHINE_INSTANCES, with_times(on_node(name="a")), on_server=False)
    scene.add(VIRTUAL_MACHINE_INSTANCES, with_times(on_node(name="b")))
    assert scene.queue(NodeController(scene.world).reconcile, "node01")["result"] == "forgotten"
    assert scene.server.peek(VIRTUAL_MACHINE_INSTANCES, "default/b")["status"]["phase"] == "Failed"  # type: ignore[index]


def test_a_vmi_that_cannot_be_written_holds_nothing_up() -> None:
    scene = Scene({})
    scene.add(VIRTUAL_MACHINE_INSTANCES, with_times(on_node(name="a")))
    scene.server.put(
        VIRTUAL_MACHINE_INSTANCES, with_times(on_node("Scheduled", "a"))
    )  # the patch does not fit
    scene.add(VIRTUAL_MACHINE_INSTANCES, with_times(on_node(name="b")))
    assert scene.queue(NodeController(scene.world).reconcile, "node01")["result"] == "rateLimited"
    phases = {name: one["status"]["phase"] for (_, name), one in scene.server.objects.items()}
    assert phases == {"default/a": "Scheduled", "default/b": "Failed"}


def test_a_refusal_is_tried_again() -> None:
    refusal = {"verb": "patch", "resource": "nodes", "error": "InternalError"}
    assert Look(node(), injectedErrors=[refusal]).queue["result"] == "rateLimited"


def test_what_is_told_of_nodes_and_vmis_brings_looks() -> None:
    now: list[str] = []
    later: list[tuple[str, float]] = []
    handlers = NodeHandlers(now.append, lambda key, delay: later.append((key, delay)))
    pending, running = entry_of(vmi("Pending")), entry_of(on_node())
    handlers.on_node(Change("node01", None, entry_of(node())))
    handlers.on_vmi(Change("default/testvm", None, pending))
    handlers.on_vmi(Change("default/testvm", pending, running))
    handlers.on_vmi(Change("default/testvm", running, running))
    handlers.on_vmi(Change("default/testvm", running, None))
    assert (now, later) == (["node01"], [("node01", SOON)])
