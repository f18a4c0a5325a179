"""Admission of VMIs: what beside defaults and rules is the webhooks' own."""

from __future__ import annotations

import copy
from datetime import UTC, datetime
from typing import Any

import orjson
import pytest

from kvnode.webhook.handlers import MUTATE, VALIDATE
from kvnode.webhook.instances import mutate_instance
from kvnode.webhook.reviews import read_request
from tests.webhook.ask import (
    AGENT_USER,
    CONTROLLER,
    answer,
    mutated,
    refused,
    review,
    running,
    settings,
    vmi,
)

FINALIZER = "kubevirt.io/foregroundDeleteVirtualMachine"


def changed(one: dict[str, Any], path: str, value: Any) -> dict[str, Any]:
    """A copy with a member set; list members are named by their index."""
    made = copy.deepcopy(one)
    *parents, last = path.split(".")
    at: Any = made
    for name in parents:
        at = at[int(name)] if isinstance(at, list) else at.setdefault(name, {})
    at[last] = value
    return made


def test_a_new_one_gets_the_finalizer_beside_those_it_has() -> None:
    assert mutated(vmi())["metadata"]["finalizers"] == [FINALIZER]
    assert mutated(changed(vmi(), "metadata.finalizers", ["a/b"]))["metadata"]["finalizers"] == [
        "a/b",
        FINALIZER,
    ]
    assert mutated(changed(vmi(), "metadata.finalizers", [FINALIZER]))["metadata"]["finalizers"] == [
        FINALIZER
    ]


def test_a_new_one_is_pending_since_now() -> None:
    asked = read_request(orjson.dumps(review(vmi())))
    moment = datetime(2026, 1, 2, 3, 4, 5, 678, tzinfo=UTC)
    patch = mutate_instance(asked, settings(), clock=lambda: moment).patch
    status = next(one["value"] for one in patch if one["path"] == "/status")
    assert status["phase"] == "Pending"
    assert status["phaseTransitionTimestamps"] == [
        {"phase": "Pending", "phaseTransitionTimestamp": "2026-01-02T03:04:05Z"}
    ]


def test_a_new_one_runs_without_root_unless_the_gate_says_otherwise() -> None:
    assert mutated(vmi())["status"]["runtimeUser"] == 107
    root = settings({"developerConfiguration": {"featureGates": ["Root"]}})
    assert mutated(vmi(), known=root)["status"]["runtimeUser"] == 0


def test_a_status_that_the_author_wrote_is_dropped_and_a_controller_s_kept() -> None:
    made = {**vmi(), "status": {"nodeName": "node01", "virtualMachineRevisionName": "r"}}
    assert "nodeName" not in mutated(made)["status"]
    assert mutated(made, user=CONTROLLER)["status"]["virtualMachineRevisionName"] == "r"


def test_the_asked_object_keeps_what_the_webhook_has_no_say_in() -> None:
    made = changed(vmi(), "metadata.managedFields", [{"manager": "kubectl"}])
    assert mutated(made)["metadata"]["managedFields"] == [{"manager": "kubectl"}]


PARITY = "alpha.kubevirt.io/EmulatorThreadCompleteToEvenParity"


@pytest.mark.parametrize(
    ("gates", "annotations", "isolated", "copied"),
    [
        (["AlignCPUs"], {PARITY: ""}, True, True),
        ([], {PARITY: ""}, True, False),
        (["AlignCPUs"], {}, True, False),
        (["AlignCPUs"], {PARITY: ""}, False, False),
    ],
)
def test_even_parity_is_the_cluster_s_wish(
    gates: list[str], annotations: dict[str, str], isolated: bool, copied: bool
) -> None:
    known = settings({"developerConfiguration": {"featureGates": gates}}, annotations=annotations)
    made = changed(
        vmi(), "spec.domain.cpu", {"isolateEmulatorThread": isolated, "dedicatedCpuPlacement": True}
    )
    assert (PARITY in mutated(made, known=known)["metadata"]["annotations"]) == copied


def test_wrong_types_are_all_named_before_anything_is_defaulted() -> None:
    made = changed(changed(vmi(), "spec.domain.cpu", {"cores": "two"}), "spec.hostname", 7)
    response = answer(MUTATE, review(made))
    assert not response["allowed"]
    assert {cause["field"] for cause in response["status"]["details"]["causes"]} == {
        "spec.domain.cpu.cores",
        "spec.hostname",
    }


# Changes of a VMI that is there.


def test_nobody_but_kubevirt_changes_a_status() -> None:
    old = running()
    new = changed(old, "status.phase", "Succeeded")
    assert mutated(new, old)["status"] == old["status"]
    assert mutated(new, old, user=CONTROLLER) == new
    assert mutated(new, old, user=AGENT_USER) == new
    del old["status"]
    assert "status" not in mutated(new, old)


@pytest.mark.parametrize(
    "user",
    [
        "",
        "kvnode-controller",
        "system:serviceaccount:default:kvnode-controller",
        "system:serviceaccount:kvnode:kvnode-webhook",
        "system:serviceaccount:kvnode:kvnode-controller ",
        "System:ServiceAccount:kvnode:kvnode-controller",
        "system:node:node01",
    ],
)
def test_nobody_passes_for_a_component(user: str) -> None:
    old = running()
    assert mutated(changed(old, "status.phase", "Succeeded"), old, user=user)["status"] == old["status"]
    assert refused(changed(old, "metadata.labels", {}), old, user=user) == ["metadata.labels"]
    assert refused(changed(old, "spec.domain.cpu.sockets", 2), old, user=user) == ["spec"]
    made = {**vmi(), "status": {"phase": "Running", "nodeName": "node01"}}
    status = mutated(made, user=user)["status"]
    assert (status["phase"], status.get("nodeName")) == ("Pending", None)


@pytest.mark.parametrize("status", [None, {}, {"phase": None}, {"phase": "Running", "nodeName": "node02"}])
def test_a_status_is_not_taken_away_either(status: Any) -> None:
    old = running()
    assert mutated({**old, "status": status}, old)["status"] == old["status"]


def test_nobody_but_kubevirt_hands_an_instance_over() -> None:
    old = running()
    for new in (
        changed(old, "metadata.labels", {"kubevirt.io/nodeName": "node02"}),
        changed(old, "metadata.labels", {}),
    ):
        assert refused(new, old) == ["metadata.labels"]
        assert refused(new, old, user=CONTROLLER) == []
    assert refused(changed(old, "metadata.labels", {**old["metadata"]["labels"], "app": "x"}), old) == []


def test_reserved_labels_are_for_kubevirt_on_a_new_one_too() -> None:
    made = changed(mutated(vmi()), "metadata.labels", {"kubevirt.io/nodeName": "node01"})
    assert refused(made) == ["metadata.labels"]
    assert refused(made, user=CONTROLLER) == []


def test_a_user_changes_no_spec() -> None:
    old = running()
    assert refused(changed(old, "spec.domain.cpu.sockets", 2), old) == ["spec"]
    assert refused(changed(old, "spec.terminationGracePeriodSeconds", 5), old) == ["spec"]
    assert refused(changed(old, "metadata.annotations.note", "x"), old) == []


def test_another_way_to_write_the_same_spec_is_no_change() -> None:
    old = running()
    new = changed(changed(old, "spec.domain.memory.guest", "1024Mi"), "spec.tolerations", [])
    assert refused(new, old) == []


def test_a_spec_that_is_none_is_refused_by_its_field() -> None:
    old = running()
    assert refused(changed(old, "spec.domain.cpu.sockets", "x"), old) == ["spec.domain.cpu.sockets"]


def with_volumes(*names: str, permanent: tuple[str, ...] = ("root",)) -> dict[str, Any]:
    """A running VMI with claims for volumes on SCSI disks."""
    made = running(volumes=[{"name": name, "persistentVolumeClaim": {"claimName": name}} for name in names])
    for disk in made["spec"]["domain"]["devices"]["disks"]:
        disk["disk"] = {"bus": "scsi"}
    made["status"]["volumeStatus"] = [
        {"name": name, **({} if name in permanent else {"hotplugVolume": {}})} for name in names
    ]
    return made


@pytest.mark.parametrize(
    ("path", "value", "fields"),
    [
        ("spec.domain.cpu.sockets", 3, []),
        ("spec.domain.memory.guest", "2Gi", []),
        ("spec.domain.cpu.maxSockets", 16, ["spec.domain.cpu.maxSockets"]),
        ("spec.domain.memory.maxGuest", "16Gi", ["spec.domain.memory.maxGuest"]),
        ("spec.domain.memory.maxGuest", "4096Mi", []),
        ("spec.volumes.0.persistentVolumeClaim.claimName", "other", ["spec.volumes[0]"]),
        ("spec.volumes.1.persistentVolumeClaim.claimName", "other", ["spec.volumes[1]"]),
        ("spec.domain.devices.disks.0.disk.bus", "virtio", ["spec.volumes[0]"]),
        ("spec.domain.devices.disks.1.disk.bus", "virtio", ["spec.volumes[1]"]),
        ("spec.domain.devices.disks.1.name", "elsewhere", ["spec.volumes[1]"]),
        ("spec.utilityVolumes", [{"name": "u", "claimName": "c"}], ["spec.utilityVolumes"]),
    ],
)
def test_what_a_controller_changes_while_it_runs(path: str, value: Any, fields: list[str]) -> None:
    old = with_volumes("root", "more")
    assert refused(changed(old, path, value), old, user=CONTROLLER) == fields


def plugged(old: dict[str, Any], volume: dict[str, Any], *disks: dict[str, Any]) -> dict[str, Any]:
    made = copy.deepcopy(old)
    made["spec"]["volumes"].append(volume)
    made["spec"]["domain"]["devices"]["disks"] += disks
    return made


CLAIM = {"name": "new", "persistentVolumeClaim": {"claimName": "new"}}


@pytest.mark.parametrize(
    ("volume", "disks", "fields"),
    [
        (CLAIM, [{"name": "new", "disk": {"bus": "scsi"}}], []),
        (CLAIM, [{"name": "new", "disk": {"bus": "virtio"}}], []),
        (CLAIM, [{"name": "new", "lun": {"bus": "scsi"}}], []),
        ({"name": "new", "dataVolume": {"name": "d"}}, [{"name": "new", "disk": {"bus": "scsi"}}], []),
        ({"name": "new", "memoryDump": {"claimName": "d"}}, [], []),
        (CLAIM, [{"name": "new", "disk": {"bus": "sata"}}], ["spec.volumes[1]"]),
        (CLAIM, [{"name": "new", "lun": {"bus": "virtio"}}], ["spec.volumes[1]"]),
        (CLAIM, [{"name": "new", "cdrom": {"bus": "sata"}}], ["spec.volumes[1]"]),
        (
            CLAIM,
            [{"name": "new", "disk": {"bus": "scsi"}, "dedicatedIOThread": True}],
            ["spec.volumes[1]"],
        ),
        (CLAIM, [{"name": "new", "disk": {"bus": "scsi"}, "bootOrder": 0}], ["spec.volumes[1]"]),
        (CLAIM, [], ["spec.volumes"]),
        (
            {"name": "new", "emptyDisk": {"capacity": "1Gi"}},
            [{"name": "new", "disk": {}}],
            ["spec.volumes[1]"],
        ),
    ],
)
def test_what_is_plugged_in(volume: dict[str, Any], disks: list[dict[str, Any]], fields: list[str]) -> None:
    old = with_volumes("root")
    assert refused(plugged(old, volume, *disks), old, user=CONTROLLER) == fields


def test_a_volume_of_its_own_stays_and_a_plugged_one_goes() -> None:
    old = with_volumes("root", "more")
    for index, fields in ((0, ["spec.volumes"]), (1, [])):
        new = copy.deepcopy(old)
        del new["spec"]["volumes"][index]
        del new["spec"]["domain"]["devices"]["disks"][index]
        assert refused(new, old, user=CONTROLLER) == fields


def test_a_migrated_volume_changes_its_claim() -> None:
    old = with_volumes("root")
    new = changed(old, "spec.volumes.0.persistentVolumeClaim.claimName", "other")
    new["status"]["migratedVolumes"] = [{"volumeName": "root"}]
    assert refused(new, old, user=CONTROLLER) == []


UTILITY = settings({"developerConfiguration": {"featureGates": ["UtilityVolumes"]}})


@pytest.mark.parametrize(
    ("volumes", "fields"),
    [
        ([{"name": "u", "claimName": "c"}], []),
        ([{"name": "there", "claimName": "old"}], []),
        ([{"name": "there", "claimName": "new"}], ["spec.utilityVolumes[0]"]),
        ([{"name": "", "claimName": "c"}], ["spec.utilityVolumes[0].name"]),
        ([{"name": "u", "claimName": ""}], ["spec.utilityVolumes[0].claimName"]),
        ([{"name": "u", "claimName": "c"}, {"name": "u", "claimName": "d"}], ["spec.utilityVolumes[1].name"]),
        ([{"name": "root", "claimName": "c"}], ["spec.utilityVolumes[0].name"]),
    ],
)
def test_utility_volumes(volumes: list[dict[str, str]], fields: list[str]) -> None:
    old = changed(with_volumes("root"), "spec.utilityVolumes", [{"name": "there", "claimName": "old"}])
    assert refused(changed(old, "spec.utilityVolumes", volumes), old, UTILITY, user=CONTROLLER) == fields


# An agent writes what is on its node.


@pytest.mark.parametrize(
    ("node", "before", "after", "allowed"),
    [
        ("node01", {}, {}, True),
        ("node02", {}, {}, False),
        ("", {}, {}, False),
        ("node02", {"targetNode": "node02"}, {"targetNode": "node02"}, True),
        ("node03", {"targetNode": "node02"}, {"targetNode": "node02"}, False),
        ("node01", {}, {"targetNode": "node02"}, False),
    ],
)
def test_an_agent_is_held_to_its_node(
    node: str, before: dict[str, str], after: dict[str, str], allowed: bool
) -> None:
    old = changed(running(), "status.migrationState", before)
    new = changed(changed(old, "status.phase", "Succeeded"), "status.migrationState", after)
    assert answer(VALIDATE, review(new, old, user=AGENT_USER, node=node))["allowed"] == allowed
    assert answer(VALIDATE, review(new, old, user=CONTROLLER, node=node))["allowed"]
    off = settings({"developerConfiguration": {"disabledFeatureGates": ["NodeRestriction"]}})
    assert answer(VALIDATE, review(new, old, user=AGENT_USER, node=node), off)["allowed"]
