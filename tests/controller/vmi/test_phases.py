"""From phase to phase."""

from __future__ import annotations

from typing import Any

import pytest

from kvnode.kube.resources import VIRTUAL_MACHINE_INSTANCES
from tests.controller.objects import call, calls, deleting, pod, reasons, vmi
from tests.reference.vmicases import VMIScene

OWNER = {"name": "testvm", "namespace": "default", "uid": "vm-uid"}
VMI_FINALIZER = "kubevirt.io/foregroundDeleteVirtualMachine"


def look(instance: dict[str, Any], *pods: dict[str, Any], **more: Any) -> dict[str, Any]:
    return VMIScene({"vmi": instance, "pods": list(pods), "vm": OWNER, **more}).reconcile()


def phase(output: dict[str, Any]) -> str:
    return str(output["vmiAfter"].get("phase", ""))


@pytest.mark.parametrize(
    ("before", "obj", "after"),
    [
        ("", None, "Scheduling"),
        ("Pending", pod("Pending"), "Scheduling"),
        ("Scheduling", pod("Pending"), "Scheduling"),
        ("Scheduling", pod(), "Scheduled"),
        ("Scheduling", pod("Failed"), "Failed"),
        ("Scheduling", None, "Failed"),
        ("Scheduled", pod(), "Scheduled"),
        ("Scheduled", None, "Failed"),
        ("Running", pod("Succeeded"), "Running"),
        ("Running", None, "Failed"),
        ("Succeeded", pod(), "Succeeded"),
    ],
)
def test_pod_decides(before: str, obj: dict[str, Any] | None, after: str) -> None:
    assert phase(look(vmi(before), *([obj] if obj else []))) == after


def test_a_pod_is_made_and_told_in_one_pass() -> None:
    output = look(vmi("Pending"))
    assert calls(output) == ["create pods", "update virtualmachineinstances"]
    assert reasons(output) == ["SuccessfulCreate"]
    assert output["expectationsAfter"] == {
        "podCreations": 1,
        "podDeletions": 0,
        "pvcCreations": 0,
        "vmiUpdates": 1,
    }


def test_hand_over() -> None:
    output = look(vmi("Scheduling"), pod(annotations={"kubevirt.io/migrationTransportUnix": "true"}))
    after = output["vmiAfter"]
    assert after["labels"]["kubevirt.io/nodeName"] == after["nodeName"] == "node01"
    assert after["migrationTransport"] == "Unix"
    assert after["volumeStatus"] == [{"name": "root"}]
    assert after["interfaces"] == [{"name": "default", "podInterfaceName": "eth0"}]


def test_dedicated_cpus_need_a_guaranteed_pod() -> None:
    instance = vmi("Scheduling")
    instance["spec"]["domain"]["cpu"]["dedicatedCpuPlacement"] = True
    output = look(instance, pod())
    assert phase(output) == "Scheduling"
    assert "FailedGuaranteeResources" in reasons(output)
    assert output["queue"]["result"] == "forgotten"


def test_after_hand_over_the_vmi_is_patched() -> None:
    output = look(vmi("Running", ran=True))
    patch = call(output, "patch virtualmachineinstances")["payload"]
    assert {"op": "test", "path": "/status/phase", "value": "Running"} in patch
    assert "update virtualmachineinstances" not in calls(output)


def test_image_errors_are_told() -> None:
    obj = pod("Pending")
    obj["status"]["containerStatuses"][0]["state"] = {"waiting": {"reason": "ImagePullBackOff"}}
    output = look(vmi("Scheduling"), obj)
    told = [one for one in output["vmiAfter"]["conditions"] if one["type"] == "Synchronized"]
    assert told == [{"type": "Synchronized", "status": "False", "reason": "ImagePullBackOff"}]


def test_unknown_phase() -> None:
    output = look(vmi("Elsewhere"), pod())
    assert output["queue"]["result"] == "rateLimited"


def test_deletion_takes_the_pods_first() -> None:
    output = look(deleting(vmi("Running", ran=True)), pod())
    assert calls(output)[0] == "delete pods"
    assert VMI_FINALIZER in output["vmiAfter"]["finalizers"]


def test_a_pod_on_its_way_out_is_not_deleted_again() -> None:
    assert "delete pods" not in calls(look(deleting(vmi("Running", ran=True)), deleting(pod())))


def test_deleted_before_it_had_a_pod() -> None:
    assert phase(look(deleting(vmi("Pending")))) == "Failed"


def test_an_ended_vmi_is_let_go_with_its_last_pod() -> None:
    assert VMI_FINALIZER in look(vmi("Failed"), pod("Failed"))["vmiAfter"]["finalizers"]
    assert VMI_FINALIZER not in look(vmi("Failed"))["vmiAfter"]["finalizers"]


def test_nobody_waits_for_a_vm_that_is_gone() -> None:
    output = look(vmi("Failed"), vm=None)
    assert "finalizers" not in output["vmiAfter"]


def test_old_finalizer_is_renamed() -> None:
    instance = vmi("Scheduling")
    instance["metadata"]["finalizers"] = ["foregroundDeleteVirtualMachine"]
    assert look(instance, pod())["vmiAfter"]["finalizers"] == [VMI_FINALIZER]


def test_a_write_is_waited_for() -> None:
    scene = VMIScene({"vmi": vmi("Pending"), "pods": [], "vm": OWNER})
    scene.reconcile()
    assert calls(scene.reconcile()) == []


def test_a_refused_write_is_not_waited_for() -> None:
    errors = [
        {"verb": "update", "resource": "virtualmachineinstances", "subresource": "", "error": "Conflict"}
    ]
    output = look(vmi("Scheduling"), pod(), injectedErrors=errors)
    assert output["expectationsAfter"]["vmiUpdates"] == 0
    assert output["queue"]["result"] == "rateLimited"


def test_pause_keeps_traffic_away() -> None:
    output = look(vmi("Running", ran=True, conditions=[{"type": "Paused", "status": "True"}]), pod())
    patch = call(output, "patch pods status")
    assert patch["patchType"] == "application/strategic-merge-patch+json"
    assert patch["payload"]["status"]["conditions"][0]["reason"] == "Paused"


def test_eviction_is_marked_and_unmarked() -> None:
    marked = pod()
    marked["metadata"]["annotations"]["descheduler.alpha.kubernetes.io/eviction-in-progress"] = "true"
    path = "/metadata/annotations/descheduler.alpha.kubernetes.io~1eviction-in-progress"
    start = look(vmi("Running", evacuationNodeName="node01"), pod())["actions"][0]
    assert start["payload"] == [{"op": "add", "path": path, "value": "true"}]
    end = look(vmi("Running"), marked)["actions"][0]
    assert end["payload"] == [{"op": "test", "path": path, "value": "true"}, {"op": "remove", "path": path}]


def test_outdated_launcher_is_labelled() -> None:
    obj = pod()
    obj["spec"]["containers"][0]["image"] = "example.test/virt-launcher:0"
    output = look(vmi("Running", ran=True), obj)
    assert output["vmiAfter"]["labels"]["kubevirt.io/outdatedLauncherImage"] == ""


def test_nothing_is_written_over_another_write_of_ours() -> None:
    """The machine's controller takes its finalizer off while the VMI's is at its status."""
    scene = VMIScene({"vmi": deleting(vmi("Failed")), "pods": [], "vm": OWNER})
    api, seen = scene.world.api, []

    async def settled(*_: object) -> None:
        if not seen:
            seen.append("the first look")
            return
        patch = [{"op": "add", "path": "/metadata/labels/touched", "value": "x"}]
        await api.patch(VIRTUAL_MACHINE_INSTANCES, "testvm", "default", patch)

    api.settled = settled  # type: ignore[method-assign]
    output = scene.reconcile()
    assert calls(output) == ["patch virtualmachineinstances"]
    assert output["expectationsAfter"]["vmiUpdates"] == 0
    assert output["queue"]["result"] == "forgotten"
