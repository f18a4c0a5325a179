"""What a start makes, and what comes before it."""

from __future__ import annotations

import uuid
from typing import Any

import pytest

from kvnode.controller.vm.firmware import legacy_uuid
from tests.controller.objects import call, calls, deleting, reasons, vm, vmi
from tests.reference.vmcases import VMScene

CREATE = "create virtualmachineinstances"


def look(machine: dict[str, Any], instance: dict[str, Any] | None = None, **more: Any) -> dict[str, Any]:
    return VMScene({"vm": machine, "vmi": instance, **more}).reconcile()


def test_revision_then_instance_then_status() -> None:
    output = look(vm())
    assert calls(output) == ["create controllerrevisions", CREATE, "update virtualmachines status"]
    assert reasons(output) == ["SuccessfulCreate"]
    assert output["expectationsAfter"]["vmiCreations"] == 1
    revision = output["actions"][0]["payload"]
    assert revision["metadata"]["name"] == "revision-start-vm-vm-uid-1"
    made = call(output, CREATE)["payload"]
    assert made["status"]["virtualMachineRevisionName"] == "revision-start-vm-vm-uid-1"
    assert made["metadata"]["finalizers"] == ["kubevirt.io/virtualMachineControllerFinalize"]
    assert made["metadata"]["annotations"]["kubevirt.io/vm-generation"] == "1"
    assert made["metadata"]["labels"] == {"app": "x"}
    told = output["vmStatusWritten"]
    assert (told["created"], told["printableStatus"], told["observedGeneration"]) == (True, "Starting", 1)


def test_the_cache_is_waited_for() -> None:
    scene = VMScene({"vm": vm(), "vmi": None})
    scene.reconcile()
    assert CREATE not in calls(scene.reconcile())


def test_a_revision_of_this_generation_is_kept_and_others_go() -> None:
    same = "<equal to {spec: input.vm.spec}>"
    revisions = [
        {"name": f"revision-start-vm-vm-uid-{number}", "revision": number, "data": same} for number in (1, 5)
    ]
    output = look(vm(), controllerRevisions=revisions)
    assert calls(output)[:2] == ["delete controllerrevisions", CREATE]
    assert output["actions"][0]["name"] == "revision-start-vm-vm-uid-5"


@pytest.mark.parametrize("resource", ["controllerrevisions", "virtualmachineinstances"])
def test_a_refused_start_is_told(resource: str) -> None:
    errors = [{"verb": "create", "resource": resource, "subresource": "", "error": "InternalError"}]
    output = look(vm(), injectedErrors=errors)
    assert output["queue"]["result"] == "rateLimited"
    assert output["expectationsAfter"]["vmiCreations"] == 0
    failure = output["vmStatusWritten"]["conditions"][-1]
    assert (failure["type"], failure["status"], failure["reason"]) == ("Failure", "True", "FailedCreate")


def test_uuid_of_a_vm_without_one_comes_of_its_name() -> None:
    namespace = uuid.UUID("6a1a24a1-4061-4607-8bf4-a3963d0c5895")
    assert legacy_uuid("testvm") == str(uuid.uuid5(namespace, "testvm"))
    machine = vm()
    del machine["spec"]["template"]["spec"]["domain"]["firmware"]
    made = call(look(machine), CREATE)["payload"]
    assert made["spec"]["domain"]["firmware"]["uuid"] == legacy_uuid("testvm")


def test_uuid_is_written_down_once() -> None:
    machine = vm("Halted")
    del machine["spec"]["template"]["spec"]["domain"]["firmware"]
    output = look(machine)
    assert calls(output) == ["patch virtualmachines", "update virtualmachines status"]
    assert output["queue"]["result"] == "forgotten"


def test_a_new_vm_is_taken_up_in_one_write() -> None:
    machine = vm()
    machine["metadata"] |= {"annotations": {}, "finalizers": []}
    output = look(machine)
    assert calls(output)[0] == "update virtualmachines"
    assert CREATE in calls(output)
    assert output["vmAfter"]["finalizers"] == ["kubevirt.io/virtualMachineControllerFinalize"]
    assert "patch virtualmachines" not in calls(output)


def test_discontinued_binding() -> None:
    machine = vm()
    machine["spec"]["template"]["spec"]["domain"]["devices"]["interfaces"] = [
        {"name": "default", "slirp": {}}
    ]
    output = look(machine)
    assert CREATE not in calls(output)
    assert output["vmStatusWritten"]["conditions"][-1]["reason"] == "FailedCreate"


def test_a_person_must_help_first() -> None:
    status = {"conditions": [{"type": "ManualRecoveryRequired", "status": "True"}]}
    assert CREATE not in calls(look(vm(status=status)))


def test_the_last_finalizer_is_the_end() -> None:
    output = look(deleting(vm()))
    assert calls(output) == ["patch virtualmachines"]
    assert "vmAfter" not in output
    assert output["queue"]["result"] == "forgotten"


def test_a_deleted_vm_with_other_finalizers_still_has_a_status() -> None:
    machine = deleting(vm())
    machine["metadata"]["finalizers"].append("example.test/other")
    output = look(machine)
    assert calls(output) == ["patch virtualmachines", "update virtualmachines status"]
    assert output["vmStatusWritten"]["printableStatus"] == "Terminating"


def test_a_deleted_vm_stops_its_vmi_first() -> None:
    output = look(deleting(vm()), vmi("Running", ran=True))
    assert calls(output)[0] == "delete virtualmachineinstances"


def test_orphans_are_left_running() -> None:
    machine = deleting(vm())
    machine["metadata"]["finalizers"].append("orphan")
    assert "delete virtualmachineinstances" not in calls(look(machine, vmi("Running", ran=True)))


def orphan() -> dict[str, Any]:
    instance = vmi("Running", ran=True)
    del instance["metadata"]["ownerReferences"]
    return instance


def test_an_orphan_is_adopted_after_a_look_at_the_server() -> None:
    output = look(vm(), orphan())
    assert calls(output)[:2] == ["get virtualmachines", "patch virtualmachineinstances"]
    patch = output["actions"][1]
    assert patch["patchType"] == "application/merge-patch+json"
    assert patch["payload"]["metadata"]["uid"] == "vmi-uid"
    assert output["vmiAfter"]["ownerReferences"][0]["uid"] == "vm-uid"


@pytest.mark.parametrize("state", [{"vmMissingOnServer": True}, {"vmUIDOnServer": "other"}])
def test_a_vm_that_is_gone_adopts_nothing(state: dict[str, Any]) -> None:
    output = look(vm(), orphan(), **state)
    assert calls(output) == ["get virtualmachines"]
    assert output["queue"]["result"] == "rateLimited"


def test_somebody_elses_vmi_is_not_touched() -> None:
    instance = vmi("Running", ran=True)
    instance["metadata"]["ownerReferences"][0]["uid"] = "another"
    output = look(vm("Halted"), instance)
    assert calls(output) == ["update virtualmachines status"]
    assert output["vmStatusWritten"]["printableStatus"] == "Stopped"


def test_nothing_is_done_on_what_is_known_to_be_old() -> None:
    scene = VMScene({"vm": vm("Halted"), "vmi": None})
    assert calls(scene.reconcile()) == ["update virtualmachines status"]
    assert calls(scene.reconcile()) == []
    scene.show()
    assert calls(scene.reconcile()) == []  # and nothing is to be changed any more
