"""What a pod is told of its VMI, and in how many calls."""

from __future__ import annotations

from typing import Any

from tests.controller.objects import call, calls, pod, vmi
from tests.controller.vmi.test_phases import look

GATE = "kubevirt.io/virtual-machine-unpaused"
TELL = "patch pods status"
NODE = {"kubevirt.io/nodeName": "node01"}


def ungated(phase: str = "Running", **metadata: Any) -> dict[str, Any]:
    """A pod whose readiness gate nobody has spoken of."""
    made = pod(phase, **metadata)
    made["status"]["conditions"] = []
    return made


def test_the_gate_waits_for_the_containers() -> None:
    assert TELL not in calls(look(vmi("Scheduling"), ungated("Pending")))


def test_the_gate_and_the_label_are_told_with_the_hand_over() -> None:
    output = look(vmi("Scheduling"), ungated())
    assert calls(output) == [TELL, "update virtualmachineinstances"]
    told = call(output, TELL)["payload"]
    assert [(one["type"], one["status"]) for one in told["status"]["conditions"]] == [(GATE, "True")]
    assert told["metadata"]["labels"] == NODE


def test_nothing_more_is_told_than_differs() -> None:
    output = look(vmi("Scheduling"), ungated(labels={**NODE, "mine": "x"}))
    assert "labels" not in call(output, TELL)["payload"]["metadata"]


def test_a_label_of_old_goes_with_the_gate() -> None:
    mine = {"kubevirt.io/outdatedLauncherImage": "", "mine": "x"}
    instance = vmi("Scheduling")
    obj = ungated(labels=mine)
    obj["spec"]["containers"][0]["image"] = ""
    told = call(look(instance, obj), TELL)["payload"]
    assert told["metadata"]["labels"] == {**NODE, "kubevirt.io/outdatedLauncherImage": None}


def test_no_label_without_a_hand_over() -> None:
    instance = vmi("Scheduling")
    instance["spec"]["domain"]["cpu"]["dedicatedCpuPlacement"] = True
    output = look(instance, ungated())
    assert "labels" not in call(output, TELL)["payload"]["metadata"]
    assert output["vmiAfter"]["phase"] == "Scheduling"


def test_a_pause_is_told_at_once() -> None:
    paused = [{"type": "Paused", "status": "True"}]
    told = call(look(vmi("Running", ran=True, conditions=paused), pod()), TELL)["payload"]
    assert [(one["type"], one["status"]) for one in told["status"]["conditions"]] == [(GATE, "False")]


def bound(at: str) -> dict[str, Any]:
    """A pod that was given to a node then, and has not started."""
    made = pod("Pending")
    scheduled = {"type": "PodScheduled", "status": "True", "lastTransitionTime": at}
    made["status"]["conditions"].append(scheduled)
    return made


def waiting(**active: str) -> dict[str, Any]:
    """A VMI that has told all but its pod's node."""
    ready = {"type": "Ready", "status": "False", "reason": "GuestNotRunning"}
    more: dict[str, Any] = {
        "launcherContainerImageVersion": "example.test/virt-launcher:1",
        "qosClass": "Burstable",
    }
    return vmi("Scheduling", activePods=dict(active), conditions=[ready], **more)


POD = "pod-uid"


def test_the_node_of_a_pod_that_starts_is_told_with_the_start() -> None:
    output = look(waiting(**{POD: ""}), bound("<now-1s>"))
    assert "vmiWritten" not in output
    assert output["queue"]["addedAfterSeconds"] == 1
    assert not output["expectationsAfter"]["vmiUpdates"]


def test_the_node_of_a_pod_that_does_not_start_is_told() -> None:
    for moment in ("<now-2s>", "<now-5s>"):
        output = look(waiting(**{POD: ""}), bound(moment))
        assert output["vmiAfter"]["activePods"] == {POD: "node01"}
        assert "addedAfterSeconds" not in output["queue"]


def test_whatever_else_is_new_is_told_at_once() -> None:
    assert look(waiting(), bound("<now-1s>"))["vmiAfter"]["activePods"] == {POD: "node01"}
    trouble = bound("<now-1s>")
    trouble["status"]["containerStatuses"][0]["state"] = {"waiting": {"reason": "ErrImagePull"}}
    assert look(waiting(**{POD: ""}), trouble)["vmiWritten"]


def test_a_time_that_is_none_hides_nothing() -> None:
    for moment in ("", "yesterday", "2999-01-01T00:00:00Z"):
        assert look(waiting(**{POD: ""}), bound(moment))["vmiWritten"]
