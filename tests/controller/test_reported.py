"""What users ran into with such controllers, and the right answer; test ids name the report."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import pytest

from kvnode import apply_defaults
from kvnode.controller.manager import Manager
from kvnode.controller.vm.firmware import legacy_uuid
from kvnode.kube.objects import Object
from kvnode.kube.resources import EVENTS, PODS, VIRTUAL_MACHINE_INSTANCES
from kvnode.spec.pod import render_launcher_pod
from tests.cluster.cluster import Cluster
from tests.controller.objects import SPEC, call, calls, vm, vmi
from tests.controller.test_manager import eventually, machine
from tests.kube.faults import Fault
from tests.kube.loops import real_time
from tests.kube.support import background, client_of, faulty
from tests.reference.vmcases import VMScene
from tests.reports import report

START = {"action": "Start"}
CREATE = "create virtualmachineinstances"
DELETE = "delete virtualmachineinstances"
MODEL = {"model": "host-model"}


def look(machine: Object, instance: Object | None, **more: Any) -> dict[str, Any]:
    return VMScene({"vm": machine, "vmi": instance, **more}).reconcile()


def failures(output: dict[str, Any]) -> list[Object]:
    told = output.get("vmStatusWritten") or {}
    return [one for one in told.get("conditions", ()) if one["type"] == "Failure"]


@report("B55")
def test_a_guest_that_ended_well_stays_off_whoever_ended_it() -> None:
    """KubeVirt's rule, and the only one there is: what evicted the pod does not count, only how the guest ended."""
    before = vm("RerunOnFailure", status={"runStrategy": "RerunOnFailure"})
    output = look(copy.deepcopy(before), vmi("Succeeded", ran=True))
    assert DELETE in calls(output)
    assert not output["vmStatusWritten"].get("stateChangeRequests")
    before["status"] = {**before["status"], **output["vmStatusWritten"]}
    assert CREATE not in calls(look(before, None))


@report("B55")
def test_a_guest_that_failed_runs_again() -> None:
    before = vm("RerunOnFailure", status={"runStrategy": "RerunOnFailure"})
    output = look(copy.deepcopy(before), vmi("Failed", ran=True))
    assert output["vmStatusWritten"]["stateChangeRequests"] == [START]
    before["status"] = {**before["status"], **output["vmStatusWritten"]}
    assert CREATE in calls(look(before, None))


@report("B56")
@pytest.mark.parametrize(
    ("before", "requests", "word"),
    [
        ("RerunOnFailure", [], "Stopped"),
        ("RerunOnFailure", [START], "WaitingForVolumeBinding"),
        ("Halted", [], "WaitingForVolumeBinding"),
        ("", [], "WaitingForVolumeBinding"),
    ],
    ids=["stopped", "asked-to-start", "strategy-changed", "new"],
)
def test_a_stopped_vm_waits_for_no_volume(before: str, requests: list[Object], word: str) -> None:
    stopped = vm("RerunOnFailure", status={"runStrategy": before, "stateChangeRequests": requests})
    volume = {"name": "data", "persistentVolumeClaim": {"claimName": "p"}}
    stopped["spec"]["template"]["spec"]["volumes"].append(volume)
    claim = {"metadata": {"name": "p", "namespace": "default"}, "status": {"phase": "Pending"}}
    scene = VMScene({"vm": stopped, "vmi": None, "persistentVolumeClaims": [claim]})
    assert scene.printable() == word


def hotplug(spec: dict[str, Any]) -> None:
    claim = {"claimName": "p", "hotpluggable": True}
    spec["volumes"].append({"name": "plugged", "persistentVolumeClaim": claim})
    disk = {"name": "plugged", "disk": {"bus": "scsi"}}
    spec["domain"]["devices"]["disks"].append(disk)


def cpu(**values: Any) -> Callable[[dict[str, Any]], None]:
    return lambda spec: spec["domain"]["cpu"].update(values)


def nothing(_: dict[str, Any]) -> None:
    """No change."""


def without_uuid(spec: dict[str, Any]) -> None:
    del spec["domain"]["firmware"]


@report("B58")
@pytest.mark.parametrize(
    ("before", "change", "needed"),
    [
        (without_uuid, nothing, False),
        (nothing, hotplug, False),
        (nothing, cpu(sockets=2), False),
        (nothing, cpu(cores=2), True),
        (nothing, nothing, False),
    ],
    ids=["uuid-persisted", "hotplug", "sockets", "cores", "cores-back"],
)
@pytest.mark.parametrize("told", [False, True], ids=["fresh", "told-before"])
def test_a_restart_is_asked_for_when_it_is_needed(
    before: Callable[[dict[str, Any]], None],
    change: Callable[[dict[str, Any]], None],
    needed: bool,
    told: bool,
) -> None:
    """The defaults that the VMI was given (maxSockets, maxGuest, the CPU's model) are no change of the VM's."""
    held = [{"type": "RestartRequired", "status": "True"}] if told else []
    changed, instance = vm(status={"conditions": held}), vmi("Running", ran=True)
    instance["spec"]["domain"]["cpu"] |= {"maxSockets": 4, **MODEL}
    instance["spec"]["domain"]["memory"]["maxGuest"] = "4Gi"
    started = copy.deepcopy(changed["spec"])
    before(started["template"]["spec"])
    change(changed["spec"]["template"]["spec"])
    changed["metadata"]["generation"] = 2
    revision = {"name": "revision-start-vm-vm-uid-1", "revision": 1, "data": {"spec": started}}
    output = look(
        changed, instance, controllerRevisions=[revision], clusterConfig={"vmRolloutStrategy": "LiveUpdate"}
    )
    found = output["vmAfter"]["status"].get("conditions", ())
    assert any(one["type"] == "RestartRequired" for one in found) is needed


@report("B60")
@pytest.mark.parametrize(
    ("strategy", "instance", "requests", "done"),
    [
        ("Always", vmi("Running", ran=True), [{"action": "Stop", "uid": "vmi-uid"}], DELETE),
        ("Halted", None, [START], "update virtualmachines"),
    ],
    ids=["stop", "start"],
)
def test_what_succeeds_is_no_failure(
    strategy: str, instance: Object | None, requests: list[Object], done: str
) -> None:
    output = look(vm(strategy, status={"stateChangeRequests": requests}), copy.deepcopy(instance))
    assert done in calls(output)
    assert failures(output) == []
    assert output["queue"]["result"] == "forgotten"


@report("B61")
def test_an_old_vm_keeps_the_uuid_that_its_name_gives_it() -> None:
    """The same in every namespace, as it always was; it is written down, and stays at a restart."""
    old = vm("Always")
    del old["spec"]["template"]["spec"]["domain"]["firmware"]
    made = call(look(copy.deepcopy(old), None), CREATE)["payload"]
    assert made["spec"]["domain"]["firmware"]["uuid"] == "5a9fc181-957e-5c32-9e5a-2de5e9673531"
    assert legacy_uuid("testvm") == "5a9fc181-957e-5c32-9e5a-2de5e9673531"


@report("B61")
def test_a_uuid_that_is_written_down_never_changes() -> None:
    kept = call(look(vm("Always"), None), CREATE)["payload"]["spec"]["domain"]["firmware"]["uuid"]
    assert kept == SPEC["domain"]["firmware"]["uuid"]


FORBIDDEN = (
    b'{"kind": "Status", "apiVersion": "v1", "status": "Failure", "reason": "Forbidden", "code": 403,'
    b' "message": "pods is forbidden: exceeded quota: small"}'
)
POD_CREATION = r"POST /api/v1/namespaces/[^/]+/pods$"


@report("B63")
@pytest.mark.cluster
@real_time
async def test_a_refused_pod_is_tried_again_and_made_once(control_plane: Cluster, namespace: str) -> None:
    async with faulty(control_plane) as (server, client), client_of(control_plane) as user:
        refusals = Fault(POD_CREATION, times=1_000, status=403, body=FORBIDDEN)
        server.faults.append(refusals)
        async with background(Manager(client, namespace=namespace).run()):
            lone: Object = {
                "apiVersion": "kubevirt.io/v1",
                "kind": "VirtualMachineInstance",
                "metadata": {"name": "lone", "namespace": namespace},
                "spec": machine(namespace, "lone")["spec"]["template"]["spec"],
            }
            await user.create(VIRTUAL_MACHINE_INSTANCES, lone)

            async def told() -> Object | None:
                found = await user.get(VIRTUAL_MACHINE_INSTANCES, "lone", namespace)
                held = found.get("status", {}).get("conditions", ())
                return next((one for one in held if one["type"] == "Synchronized"), None)

            condition = await eventually(told)
            assert (condition["status"], condition["reason"]) == ("False", "FailedCreate")
            assert "exceeded quota: small" in condition["message"]
            found = await user.get(VIRTUAL_MACHINE_INSTANCES, "lone", namespace)
            assert found["status"]["phase"] == "Pending"

            async def refused() -> bool:
                return server.count(POD_CREATION) >= 3

            await eventually(refused)
            refusals.times = 0

            async def made() -> list[Object]:
                return await user.list_all(PODS, namespace)

            await eventually(made)

            async def well() -> bool:
                return await told() is None

            await eventually(well)
            assert len(await made()) == 1
            events = await user.list_all(EVENTS, namespace)
        counts = {one["reason"]: one["count"] for one in events}
        assert counts["SuccessfulCreate"] == 1
        assert counts["FailedCreate"] >= 3


@report("B33")
@pytest.mark.parametrize(
    ("image", "policy"),
    [
        ("reg.example:5000/img", "Always"),
        ("img", "Always"),
        ("img:latest", "Always"),
        ("img:v1", "IfNotPresent"),
        ("img@sha256:" + "0" * 64, "IfNotPresent"),
        ("reg.example:5000/img:v1", "IfNotPresent"),
    ],
)
def test_an_image_without_a_tag_is_pulled_each_time(image: str, policy: str) -> None:
    instance = vmi("Pending")
    instance["spec"]["volumes"] = [{"name": "root", "containerDisk": {"image": image}}]
    pod = render_launcher_pod(apply_defaults(instance, "amd64"), "amd64")
    (disk,) = [one["image"] for one in pod["spec"]["volumes"] if one["name"] == "root"]
    assert disk == {"reference": image, "pullPolicy": policy}
