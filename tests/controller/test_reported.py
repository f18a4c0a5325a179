"""What users ran into with such controllers, and the right answer; test ids name the report."""

from __future__ import annotations

import copy
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from kvnode import apply_defaults
from kvnode.controller.manager import Manager
from kvnode.controller.ports import Settings
from kvnode.controller.vm import VirtualMachineController
from kvnode.controller.vm.firmware import legacy_uuid
from kvnode.kube.client import Client
from kvnode.kube.objects import Object
from kvnode.kube.resources import EVENTS, PODS, VIRTUAL_MACHINE_INSTANCES, VIRTUAL_MACHINES
from kvnode.spec.pod import render_launcher_pod
from tests.cluster.cluster import Cluster
from tests.controller.objects import SPEC, call, calls, deleting, pod, vm, vmi
from tests.controller.standin import StandIn
from tests.controller.test_manager import Played, eventually, machine
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
    """KubeVirt's rule: what evicted the pod does not count, only how the guest ended."""
    before = vm("RerunOnFailure", status={"runStrategy": "RerunOnFailure"})
    output = look(copy.deepcopy(before), vmi("Succeeded", ran=True))
    assert DELETE in calls(output)
    assert not output["vmStatusWritten"].get("stateChangeRequests")
    before["status"] = {**before["status"], **output["vmStatusWritten"]}
    assert CREATE not in calls(look(before, None))


def evicting(*pods: Object, rerun: bool, **status: Any) -> dict[str, Any]:
    """A pass over a RerunOnFailure VM whose guest has ended well, with these pods."""
    machine = vm("RerunOnFailure", status={"runStrategy": "RerunOnFailure", **status})
    scene = VMScene({"vm": machine, "vmi": vmi("Succeeded", ran=True, nodeName="node01"), "pods": list(pods)})
    settings = replace(scene.world.settings(), rerun_evicted=rerun)
    scene.controller = VirtualMachineController(replace(scene.world, settings=lambda: settings))
    return scene.reconcile()


TEMPORARY: dict[str, Any] = {"annotations": {"kubevirt.io/ephemeral-provisioning": ""}}
ELSEWHERE: dict[str, Any] = {"node": "node02", "uid": "other", "name": "other"}
STOP: Object = {"action": "Stop", "uid": "vmi-uid"}


@report("B55")
@pytest.mark.parametrize(
    ("pods", "status", "evicted"),
    [
        ([deleting(pod())], {}, True),
        ([deleting(pod("Succeeded"))], {}, True),
        ([], {}, True),
        ([deleting(pod("Succeeded")), pod("Succeeded", **ELSEWHERE)], {}, True),
        ([pod("Succeeded", **TEMPORARY)], {}, True),
        ([pod()], {}, False),
        ([pod("Succeeded")], {}, False),
        ([pod("Succeeded"), deleting(pod("Succeeded", **ELSEWHERE))], {}, False),
        ([deleting(pod())], {"stateChangeRequests": [STOP]}, False),
    ],
    ids=[
        *("going", "ended", "gone", "another-elsewhere", "temporary"),
        *("runs-yet", "by-itself", "another-goes", "asked-to"),
    ],
)
@pytest.mark.parametrize("rerun", [True, False], ids=["rerun", "as-in-kubevirt"])
def test_a_guest_that_was_evicted_runs_again_if_wished(
    pods: list[Object], status: dict[str, Any], evicted: bool, rerun: bool
) -> None:
    output = evicting(*pods, rerun=rerun, **status)
    assert DELETE in calls(output)
    asked = output["vmAfter"]["status"].get("stateChangeRequests") or []
    assert (START in asked) is (evicted and rerun)


@report("B55")
@pytest.mark.cluster
@pytest.mark.parametrize("rerun", [True, False], ids=["rerun", "as-in-kubevirt"])
@real_time
async def test_a_drained_machine(control_plane: Cluster, namespace: str, rerun: bool) -> None:
    settings = Settings(rerun_evicted=rerun)
    async with client_of(control_plane) as user:
        work = (Manager(user, settings, namespace=namespace).run(), StandIn(user, namespace).run())
        async with background(*work):
            played = Played(user, namespace, "drained")
            await user.create(VIRTUAL_MACHINES, machine(namespace, "drained", "RerunOnFailure"))
            await played.vm("Running", ready=True)
            before = await played.vmi("Running")
            launcher = (await eventually(played.pod))["metadata"]["name"]
            hold = [{"op": "add", "path": "/metadata/finalizers", "value": ["example.test/still-ending"]}]
            await user.patch(PODS, launcher, namespace, hold)
            named = {"name": launcher, "namespace": namespace}
            eviction = {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": named}
            await user.create(PODS, eviction, subresource="eviction")
            await played.become("Succeeded")
            drop = [{"op": "remove", "path": "/metadata/finalizers"}]
            await user.patch(PODS, launcher, namespace, drop)
            if rerun:
                after = await again(user, namespace, before["metadata"]["uid"])
                assert after["metadata"]["name"] == "drained"
                await played.vm("Running", ready=True)
            else:
                await played.vm("Stopped")


async def again(user: Client, namespace: str, before: str) -> Object:
    """Wait for another VMI than that."""

    async def check() -> Object | None:
        found = await user.get(VIRTUAL_MACHINE_INSTANCES, "drained", namespace)
        return found if found["metadata"]["uid"] != before else None

    found: Object = await eventually(check)
    return found


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
@pytest.mark.parametrize("namespace", ["a", "b"])
def test_an_old_vm_keeps_the_uuid_that_its_name_gives_it(namespace: str) -> None:
    """The same in every namespace, as it always was; it is written down, and stays at a restart."""
    old = vm("Always")
    del old["spec"]["template"]["spec"]["domain"]["firmware"]
    old["metadata"]["namespace"] = namespace
    scene = VMScene({"vm": old, "vmi": None})
    made = call(scene.reconcile(), CREATE)["payload"]
    uuid = "5a9fc181-957e-5c32-9e5a-2de5e9673531"
    assert made["spec"]["domain"]["firmware"]["uuid"] == uuid
    assert legacy_uuid("testvm") == uuid
    scene.show()
    scene.controller = VirtualMachineController(scene.world)
    scene.reconcile()
    written = scene.server.peek(VIRTUAL_MACHINES, f"{namespace}/testvm")
    assert written is not None
    assert written["spec"]["template"]["spec"]["domain"]["firmware"]["uuid"] == uuid


@report("B61")
@pytest.mark.parametrize("strategy", ["Always", "Halted"])
def test_one_seen_for_the_first_time_has_it_written_down_at_once(strategy: str) -> None:
    old = vm(strategy)
    del old["metadata"]["annotations"], old["spec"]["template"]["spec"]["domain"]["firmware"]
    scene = VMScene({"vm": old, "vmi": None})
    scene.reconcile()
    written = scene.server.peek(VIRTUAL_MACHINES, "default/testvm")
    assert written is not None
    firmware = written["spec"]["template"]["spec"]["domain"]["firmware"]
    assert firmware["uuid"] == "5a9fc181-957e-5c32-9e5a-2de5e9673531"


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
                held = (found.get("status") or {}).get("conditions") or ()
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

            async def events() -> dict[str, int] | None:
                counts = {one["reason"]: one["count"] for one in await user.list_all(EVENTS, namespace)}
                return counts if "SuccessfulCreate" in counts and counts.get("FailedCreate", 0) >= 3 else None

            assert (await eventually(events))["SuccessfulCreate"] == 1


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
