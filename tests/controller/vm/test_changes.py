"""A VM that is changed while its VMI runs."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import pytest

from kvnode.controller.vm.restart import needs_restart_for_networks
from tests.controller.objects import SPEC, call, calls, vm, vmi
from tests.reference.vmcases import VMScene

PATCH = "patch virtualmachineinstances"
ROOM = {"cpu": {**SPEC["domain"]["cpu"], "maxSockets": 4}, "memory": {"guest": "1Gi", "maxGuest": "4Gi"}}
MIGRATABLE = {"type": "LiveMigratable", "status": "True"}

Change = Callable[[dict[str, Any]], Any]


def look(change: Change, *, strategy: str = "LiveUpdate", **status: Any) -> dict[str, Any]:
    """One pass over a VM whose template's spec was changed since its VMI was made."""
    machine, instance = vm(), vmi("Running", ran=True, **status)
    instance["spec"]["domain"] |= copy.deepcopy(ROOM)
    started = copy.deepcopy(machine["spec"])
    change(machine["spec"]["template"]["spec"])
    machine["metadata"]["generation"] = 2
    revision = {"name": "revision-start-vm-vm-uid-1", "revision": 1, "data": {"spec": started}}
    return VMScene(
        {
            "vm": machine,
            "vmi": instance,
            "controllerRevisions": [revision],
            "clusterConfig": {"vmRolloutStrategy": strategy},
        }
    ).reconcile()


def needs_restart(output: dict[str, Any]) -> bool:
    held = output["vmAfter"]["status"].get("conditions", ())
    return any(one["type"] == "RestartRequired" and one["status"] == "True" for one in held)


def paths(output: dict[str, Any]) -> list[str]:
    patches = [one["payload"] for one in output["actions"] if one["verb"] == "patch"]
    return [one["path"] for patch in patches for one in patch if one["op"] != "test"]


def sockets(count: int) -> Change:
    return lambda spec: spec["domain"]["cpu"].update(sockets=count)


def guest(size: str) -> Change:
    return lambda spec: spec["domain"]["memory"].update(guest=size)


def test_sockets_are_plugged() -> None:
    output = look(sockets(2))
    assert call(output, PATCH)["payload"] == [
        {"op": "test", "path": "/spec/domain/cpu/sockets", "value": 1},
        {"op": "replace", "path": "/spec/domain/cpu/sockets", "value": 2},
    ]
    assert not needs_restart(output)


def test_cpu_requests_follow_the_ratio() -> None:
    machine, instance = vm(), vmi("Running", ran=True)
    instance["spec"]["domain"] |= copy.deepcopy(ROOM)
    for obj in (machine["spec"]["template"], instance):
        obj["spec"]["domain"]["resources"]["requests"]["cpu"] = "100m"
    machine["spec"]["template"]["spec"]["domain"]["cpu"]["sockets"] = 3
    output = VMScene({"vm": machine, "vmi": instance}).reconcile()
    assert call(output, PATCH)["payload"][-1]["value"] == "300m"


@pytest.mark.parametrize("count", [0, 8])
def test_other_sockets_want_a_restart(count: int) -> None:
    output = look(sockets(count))
    assert needs_restart(output)
    assert PATCH not in calls(output)


def test_memory_is_plugged() -> None:
    output = look(guest("2Gi"), conditions=[MIGRATABLE], memory={"guestCurrent": "1Gi", "guestAtBoot": "1Gi"})
    assert paths(output) == ["/spec/domain/memory/guest", "/spec/domain/resources/requests/memory"]
    assert call(output, PATCH)["payload"][-1]["value"] == "2Gi"


@pytest.mark.parametrize("size", ["512Mi", "8Gi", "1025Mi"])
def test_other_sizes_want_a_restart(size: str) -> None:
    output = look(guest(size), conditions=[MIGRATABLE], memory={"guestCurrent": "1Gi", "guestAtBoot": "1Gi"})
    assert needs_restart(output)


@pytest.mark.parametrize(
    ("change", "status", "reason"),
    [
        (sockets(2), {"conditions": [{"type": "HotVCPUChange", "status": "True"}]}, "HotPlugCPUError"),
        (sockets(2), {"migrationState": {"startTimestamp": "<now-5s>"}}, "HotPlugCPUError"),
        (
            guest("2Gi"),
            {
                "conditions": [MIGRATABLE, {"type": "HotMemoryChange", "status": "True"}],
                "memory": {"guestCurrent": "1Gi"},
            },
            "HotPlugMemoryError",
        ),
    ],
)
def test_one_change_at_a_time(change: Change, status: dict[str, Any], reason: str) -> None:
    output = look(change, **status)
    assert output["queue"]["result"] == "rateLimited"
    failures = [one for one in output["vmStatusWritten"]["conditions"] if one["type"] == "Failure"]
    assert [one["reason"] for one in failures] == [reason]


@pytest.mark.parametrize(
    "change", [sockets(2), guest("2Gi"), lambda spec: spec.update(nodeSelector={"disk": "fast"})]
)
def test_a_staged_cluster_changes_nothing_that_runs(change: Change) -> None:
    output = look(change, strategy="Stage")
    assert needs_restart(output)
    assert PATCH not in calls(output)


def test_placement_follows() -> None:
    assert paths(look(lambda spec: spec.update(nodeSelector={"disk": "fast"}))) == ["/spec/nodeSelector"]
    assert paths(look(lambda spec: spec.update(tolerations=[{"key": "k"}]))) == ["/spec/tolerations"]


def test_quantities_are_compared_by_value() -> None:
    assert not needs_restart(look(guest("1024Mi"), strategy="Stage"))


def test_a_field_that_cannot_follow() -> None:
    assert needs_restart(look(lambda spec: spec["domain"]["cpu"].update(cores=2)))


def test_hotplugged_disk() -> None:
    def change(spec: dict[str, Any]) -> None:
        claim = {"claimName": "p", "hotpluggable": True}
        spec["volumes"].append({"name": "extra", "persistentVolumeClaim": claim})
        spec["domain"]["devices"]["disks"].append({"name": "extra", "disk": {"bus": "scsi"}})

    output = look(change)
    assert not needs_restart(output)
    assert paths(output) == ["/spec/volumes", "/spec/domain/devices/disks"]


def test_ordinary_disk_wants_a_restart() -> None:
    def change(spec: dict[str, Any]) -> None:
        spec["volumes"].append({"name": "extra", "persistentVolumeClaim": {"claimName": "p"}})

    assert needs_restart(look(change))


def test_secondary_network_is_plugged() -> None:
    def change(spec: dict[str, Any]) -> None:
        spec["networks"].append({"name": "blue", "multus": {"networkName": "blue"}})
        spec["domain"]["devices"]["interfaces"].append({"name": "blue", "bridge": {}})

    output = look(change)
    assert not needs_restart(output)
    assert paths(output) == ["/spec/networks", "/spec/domain/devices/interfaces"]


def test_network_rules() -> None:
    running = {"networks": [{"name": "a", "multus": {"networkName": "x"}}], "domain": {"devices": {}}}
    renamed = {"networks": [{"name": "a", "multus": {"networkName": "y"}}], "domain": {"devices": {}}}
    removed = {"networks": [], "domain": {"devices": {}}}
    with_pod = {"networks": [*running["networks"], {"name": "p", "pod": {}}], "domain": {"devices": {}}}
    assert not needs_restart_for_networks(renamed, running)
    assert needs_restart_for_networks(removed, running)
    assert needs_restart_for_networks(with_pod, running)
    assert needs_restart_for_networks(running, with_pod) is not False


def test_generation_follows_when_the_template_is_the_same() -> None:
    output = look(lambda _: None)
    assert output["vmiAfter"]["annotations"]["kubevirt.io/vm-generation"] == "2"
    assert output["vmStatusWritten"]["observedGeneration"] == 2
    assert "get controllerrevisions" not in calls(output)


def test_generation_stays_when_it_is_not() -> None:
    output = look(sockets(2))
    assert output["vmStatusWritten"]["observedGeneration"] == 1
    assert output["vmStatusWritten"]["desiredGeneration"] == 2
