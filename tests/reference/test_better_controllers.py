"""The controllers' rules: each recognises its difference, and no more than that."""

from __future__ import annotations

import copy
from typing import Any

import pytest

from tests.controller.objects import vm, vmi
from tests.reference import better_controllers as better
from tests.reference.common import Case
from tests.reference.vmcases import VMScene

Output = dict[str, Any]

GATE = {"status": {"conditions": [{"type": "kubevirt.io/virtual-machine-unpaused", "status": "True"}]}}
TELL = {"verb": "patch", "resource": "pods", "subresource": "status", "name": "p", "payload": GATE}
UPDATE = {"verb": "update", "resource": "virtualmachineinstances", "name": "v", "payload": {}}
LABEL = {
    "verb": "patch",
    "resource": "pods",
    "name": "p",
    "payload": [{"op": "add", "path": "/metadata/labels", "value": {"x": "y"}}],
}


def case(phase: str = "Scheduling", pod: str = "Pending", **status: Any) -> Case:
    containers = [{"name": "compute", "ready": pod == "Running"}]
    held = {"status": {"phase": pod, "containerStatuses": containers}}
    return Case("vmi", 1, {"input": {"vmi": {"status": {"phase": phase, **status}}, "pods": [held]}})


def output(*actions: Output, **after: Any) -> Output:
    made = {
        "actions": [copy.deepcopy(one) for one in actions],
        "queue": {"ops": [], "result": "forgotten"},
        "vmiAfter": {"phase": "Scheduling", **after},
        "vmiWritten": UPDATE in actions,
    }
    # A case leaves out what is empty or false.
    return {name: value for name, value in made.items() if value}


class TestGateToldLater:
    def test_recognised(self) -> None:
        assert better.gate_told_later(case(), output(TELL, UPDATE), output(UPDATE))

    @pytest.mark.parametrize(
        ("given", "got"),
        [
            (case("Running"), output(UPDATE)),
            (case(pod="Running"), output(UPDATE)),
            (case(), output()),
            (case(), output(TELL, UPDATE)),
            (case(), output(UPDATE, phase="Failed")),
        ],
        ids=["handed-over", "pod-runs", "more-missing", "told", "another-end"],
    )
    def test_nothing_else(self, given: Case, got: Output) -> None:
        assert not better.gate_told_later(given, output(TELL, UPDATE), got)

    def test_a_refused_call_is_a_difference(self) -> None:
        want = output({**TELL, "error": "Conflict"}, UPDATE)
        assert not better.gate_told_later(case(), want, output(UPDATE))


def told(**metadata: Any) -> Output:
    return {**TELL, "payload": {**GATE, "metadata": metadata}}


class TestGateToldWithLabels:
    def test_labels(self) -> None:
        want, got = output(TELL, LABEL, UPDATE), output(told(labels={"x": "y"}), UPDATE)
        assert better.gate_told_with_labels(case(), want, got)

    def test_the_node_that_a_later_pass_tells(self) -> None:
        want = output(TELL, UPDATE, nodeName="n")
        got = output(told(labels={"kubevirt.io/nodeName": "n"}), UPDATE, nodeName="n")
        assert better.gate_told_with_labels(case(), want, got)

    @pytest.mark.parametrize(
        "call",
        [TELL, told(labels={"x": "z"}), told(annotations={"x": "y"}), told(labels={"x": "y", "z": ""})],
        ids=["forgotten", "another-value", "another-field", "one-more"],
    )
    def test_nothing_else(self, call: Output) -> None:
        assert not better.gate_told_with_labels(case(), output(TELL, LABEL, UPDATE), output(call, UPDATE))


class TestNodeToldWithStart:
    def late(self, **more: Any) -> Output:
        made = output(activePods={"u": ""})
        made["queue"]["ops"] = [{"op": "addAfter", "key": "v", "delaySeconds": 1}]
        return {**made, **more}

    def test_recognised(self) -> None:
        want = output(UPDATE, activePods={"u": "n"}, statusChanged=True)
        assert better.node_told_with_start(case(activePods={"u": ""}), want, self.late())

    @pytest.mark.parametrize(
        ("given", "want", "more"),
        [
            (case("Pending", activePods={"u": ""}), output(UPDATE, activePods={"u": "n"}), {}),
            (case(activePods={}), output(UPDATE, activePods={"u": "n"}), {}),
            (case(activePods={"u": ""}), output(UPDATE, activePods={"u": "n"}, phase="Scheduled"), {}),
            (case(activePods={"u": ""}), output(UPDATE, activePods={"u": "n"}), {"queue": {"ops": []}}),
            (case(activePods={"u": ""}), output(TELL, UPDATE, activePods={"u": "n"}), {}),
        ],
        ids=["another-phase", "another-pod", "more-to-tell", "never", "more-calls"],
    )
    def test_nothing_else(self, given: Case, want: Output, more: Output) -> None:
        assert not better.node_told_with_start(given, want, self.late(**more))


ASKED: list[Output] = [{"action": "Start"}]
DELETE: Output = {"verb": "delete", "resource": "virtualmachineinstances", "name": "testvm"}
STATUS: Output = {
    "verb": "update",
    "resource": "virtualmachines",
    "subresource": "status",
    "name": "testvm",
    "payload": {"status": {"conditions": [{"type": "Ready"}, {"type": "Failure"}]}},
}


class TestStartRequests:
    """What is refused when a failed VMI of a RerunOnFailure VM is dealt with, as the reference has it and we."""

    def given(self, *errors: Output) -> Case:
        made = vm("RerunOnFailure", status={"runStrategy": "RerunOnFailure"})
        return Case("vm", 1, {"input": {"vm": made, "vmi": vmi("Failed"), "injectedErrors": list(errors)}})

    def got(self, *errors: Output) -> Output:
        made = copy.deepcopy(self.given(*errors).data["input"])
        return VMScene(made).reconcile()

    def patch(self, **more: Any) -> Output:
        add = {"op": "add", "path": "/status/stateChangeRequests", "value": ASKED}
        words = {"verb": "patch", "resource": "virtualmachines", "subresource": "status", "name": "testvm"}
        return {**words, "payload": [add], **more}

    def want(self, *actions: Output) -> Output:
        return {"actions": list(actions), "queue": {"result": "rateLimited"}}

    def error(self, verb: str, subresource: str = "status") -> Output:
        return {
            "verb": verb,
            "resource": "virtualmachines",
            "subresource": subresource,
            "error": "InternalError",
        }

    def test_a_request_that_the_reference_loses(self) -> None:
        error = self.error("patch")
        got = self.got(error)
        told = copy.deepcopy(got["vmStatusWritten"])
        del told["stateChangeRequests"]
        told["conditions"].append({"type": "Failure", "status": "True"})
        status = {**STATUS, "payload": {"status": told}}
        want = self.want(DELETE, self.patch(error="InternalError"), status)
        assert better.start_request_kept(self.given(error), want, got)
        del got["actions"][-2]["payload"]["status"]["stateChangeRequests"]
        assert not better.start_request_kept(self.given(error), want, got)

    def test_a_status_that_cannot_be_written(self) -> None:
        error = self.error("update")
        want = self.want(DELETE, self.patch(), {**STATUS, "error": "InternalError"})
        got = self.got(error)
        assert better.not_deleted_unasked(self.given(error), want, got)
        got["actions"].append(DELETE)
        assert not better.not_deleted_unasked(self.given(error), want, got)
