"""The decision table: run strategy, VMI and request."""

from __future__ import annotations

from typing import Any

import pytest

from kvnode.controller.vm import VirtualMachineController
from tests.controller.objects import call, calls, deleting, reasons, vm, vmi
from tests.reference.vmcases import VMScene

START = {"action": "Start"}
STOP = {"action": "Stop", "uid": "vmi-uid"}
CREATE = "create virtualmachineinstances"
DELETE = "delete virtualmachineinstances"


def look(strategy: str, instance: dict[str, Any] | None, *requests: Any, **status: Any) -> dict[str, Any]:
    """One pass over a VM of that strategy."""
    if requests:
        status["stateChangeRequests"] = list(requests)
    return VMScene({"vm": vm(strategy, status=status), "vmi": instance}).reconcile()


def did(output: dict[str, Any]) -> str:
    """What was done to the VMI."""
    found = [one for one in calls(output) if one in (CREATE, DELETE)]
    assert len(found) <= 1
    return {CREATE: "start", DELETE: "stop"}[found[0]] if found else "nothing"


@pytest.mark.parametrize(
    ("strategy", "absent", "running", "succeeded", "failed"),
    [
        ("Always", "start", "nothing", "stop", "stop"),
        ("RerunOnFailure", "start", "nothing", "stop", "stop"),
        ("Manual", "nothing", "nothing", "nothing", "nothing"),
        ("Halted", "nothing", "stop", "stop", "stop"),
        ("Once", "start", "nothing", "nothing", "nothing"),
    ],
)
def test_phase_decides(strategy: str, absent: str, running: str, succeeded: str, failed: str) -> None:
    instances = (None, vmi("Running", ran=True), vmi("Succeeded", ran=True), vmi("Failed", ran=True))
    found = [did(look(strategy, instance)) for instance in instances]
    assert found == [absent, running, succeeded, failed]


@pytest.mark.parametrize(
    ("strategy", "what"),
    [
        ("Always", "stop"),
        ("RerunOnFailure", "stop"),
        ("Manual", "stop"),
        ("Halted", "stop"),
        ("Once", "nothing"),
    ],
)
def test_stop_request(strategy: str, what: str) -> None:
    assert did(look(strategy, vmi("Running", ran=True), STOP)) == what


@pytest.mark.parametrize("request_", [{"action": "Stop"}, {"action": "Stop", "uid": "another"}])
def test_stop_request_of_another_is_dropped(request_: dict[str, str]) -> None:
    output = look("Manual", vmi("Running", ran=True), request_)
    assert did(output) == "nothing"
    assert "stateChangeRequests" not in output["vmStatusWritten"]


def test_only_the_first_request_counts() -> None:
    output = look("Manual", vmi("Running", ran=True), START, STOP)
    assert did(output) == "nothing"
    assert output["vmStatusWritten"]["stateChangeRequests"] == [STOP]


@pytest.mark.parametrize("strategy", ["Manual", "RerunOnFailure"])
def test_start_request(strategy: str) -> None:
    output = look(strategy, None, START, runStrategy=strategy)
    assert did(output) == "start"
    assert "stateChangeRequests" not in output["vmStatusWritten"]


def test_rerun_on_failure_does_not_start_what_it_has_started_before() -> None:
    assert did(look("RerunOnFailure", None, runStrategy="RerunOnFailure")) == "nothing"
    assert did(look("RerunOnFailure", None, runStrategy="Manual")) == "start"


def test_paused_start() -> None:
    output = look("Manual", None, {"action": "Start", "data": {"paused": "true"}})
    assert call(output, CREATE)["payload"]["spec"]["startStrategy"] == "Paused"


def test_start_of_a_halted_vm_makes_it_one_that_always_runs() -> None:
    output = look("Halted", None, START)
    assert calls(output) == ["update virtualmachines", "update virtualmachines status"]
    assert output["vmAfter"]["runStrategy"] == "Always"
    assert output["queue"]["result"] == "forgotten"
    assert [one["type"] for one in output["vmStatusWritten"]["conditions"]] == ["Ready"]


def test_start_of_a_halted_vm_that_is_refused() -> None:
    errors = [{"verb": "update", "resource": "virtualmachines", "subresource": "", "error": "Conflict"}]
    machine = vm("Halted", status={"stateChangeRequests": [START]})
    output = VMScene({"vm": machine, "injectedErrors": errors}).reconcile()
    assert output["queue"]["result"] == "rateLimited"
    failure = output["vmStatusWritten"]["conditions"][-1]
    assert (failure["type"], failure["reason"]) == ("Failure", "FailedCreate")


STATUS = "update virtualmachines status"


def test_a_failure_asks_for_its_start_before_its_vmi_goes() -> None:
    output = look("RerunOnFailure", vmi("Failed"), runStrategy="RerunOnFailure")
    assert calls(output) == [STATUS, DELETE, STATUS, "patch virtualmachineinstances"]
    asked = {"runStrategy": "RerunOnFailure", "stateChangeRequests": [START]}
    assert output["actions"][0]["payload"]["status"] == asked
    assert output["vmStatusWritten"]["stateChangeRequests"] == [START]
    assert output["queue"]["result"] == "forgotten"


def test_a_start_that_cannot_be_asked_for_leaves_the_vmi() -> None:
    errors = [{"verb": "update", "resource": "virtualmachines", "subresource": "status", "error": "Conflict"}]
    scene = VMScene({"vm": vm("RerunOnFailure"), "vmi": vmi("Failed"), "injectedErrors": errors})
    output = scene.reconcile()
    assert calls(output) == [STATUS]
    assert "deletionTimestampSet" not in output["vmiAfter"]
    assert output["queue"]["result"] == "rateLimited"


def test_a_vmi_that_cannot_be_deleted_is_asked_for_once() -> None:
    errors = [{"verb": "delete", "resource": "virtualmachineinstances", "error": "InternalError"}]
    machine = vm("RerunOnFailure", status={"stateChangeRequests": [STOP]})
    scene = VMScene({"vm": machine, "vmi": vmi("Failed"), "injectedErrors": errors})
    for _ in range(3):
        output = scene.reconcile()
        assert output["queue"]["result"] == "rateLimited"
        assert output["vmAfter"]["status"]["stateChangeRequests"] == [STOP, START]
        scene.show()


def test_who_dies_when_a_failed_vmi_is_deleted_does_not_forget_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever leads next finds no VMI, or one that is going, which tells of no failure."""

    class Death(BaseException):
        """Of the process."""

    instance = vmi("Failed", ran=True)
    del instance["metadata"]["finalizers"]
    scene = VMScene({"vm": vm("RerunOnFailure", status={"runStrategy": "RerunOnFailure"}), "vmi": instance})
    delete = scene.server.delete

    async def last(*arguments: Any, **more: Any) -> None:
        await delete(*arguments, **more)
        raise Death

    with monkeypatch.context() as patched:
        patched.setattr(scene.server, "delete", last)
        with pytest.raises(Death):
            scene.reconcile()
    scene.show()
    scene.controller = VirtualMachineController(scene.world)
    assert did(scene.reconcile()) == "start"


def test_running_and_strategy_together_are_refused() -> None:
    scene = VMScene({"vm": vm("Always", running=True), "vmi": None})
    output = scene.reconcile()
    assert calls(output) == []
    assert output["queue"]["result"] == "rateLimited"


@pytest.mark.parametrize(("running", "what"), [(True, "start"), (False, "nothing")])
def test_running_alone(running: bool, what: str) -> None:
    machine = vm(running=running)
    del machine["spec"]["runStrategy"]
    assert did(VMScene({"vm": machine, "vmi": None}).reconcile()) == what


def test_unknown_strategy() -> None:
    output = look("Sometimes", None)
    assert output["queue"]["result"] == "rateLimited"
    assert output["vmStatusWritten"]["conditions"][-1]["reason"] == "FailedCreate"


def test_a_vmi_on_its_way_out_is_left_alone() -> None:
    output = look("Halted", deleting(vmi("Running", ran=True)))
    assert did(output) == "nothing"
    assert output["vmStatusWritten"]["printableStatus"] == "Stopping"


def test_restart_takes_two_passes() -> None:
    instance = vmi("Failed", ran=True)
    instance["metadata"]["finalizers"] = ["kubevirt.io/virtualMachineControllerFinalize"]
    scene = VMScene({"vm": vm("Always"), "vmi": instance})
    first = scene.reconcile()
    assert did(first) == "stop"
    assert "vmiAfter" not in first
    assert did(scene.reconcile()) == "nothing"  # the cache does not show the deletion yet
    scene.show()
    scene.controller.expectations.clear(scene.key)
    assert did(scene.reconcile()) == "start"
    assert reasons(first) == ["SuccessfulDelete"]


def test_receiver() -> None:
    output = look("WaitAsReceiver", None)
    created = call(output, CREATE)["payload"]
    assert created["metadata"]["annotations"]["kubevirt.io/create-migration-target"] == "true"
    refused = look("WaitAsReceiver", vmi("Running", ran=True))
    assert refused["queue"]["result"] == "rateLimited"
    done = look("WaitAsReceiver", vmi("Running", ran=True, migrationState={"completed": True}))
    assert done["queue"]["result"] == "forgotten"
