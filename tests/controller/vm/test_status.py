from __future__ import annotations

from typing import Any

import pytest

from tests.controller.objects import calls, deleting, vm, vmi
from tests.reference.vmcases import VMScene

PAUSED = {"type": "Paused", "status": "True"}


def condition(kind: str, status: str, reason: str = "") -> dict[str, Any]:
    return {"conditions": [{"type": kind, "status": status, "reason": reason}]}


@pytest.mark.parametrize(
    ("word", "strategy", "instance"),
    [
        ("Stopped", "Manual", None),
        ("Stopped", "Manual", vmi("Succeeded", ran=True)),
        ("Running", "Always", vmi("Running", ran=True)),
        ("Paused", "Always", vmi("Running", ran=True, conditions=[PAUSED])),
        ("Stopping", "Always", deleting(vmi("Running", ran=True))),
        ("Migrating", "Always", vmi("Running", migrationState={"startTimestamp": "<now-1s>"})),
        ("Starting", "Always", vmi("Scheduled")),
        ("Starting", "Always", vmi("")),
        (
            "ErrorUnschedulable",
            "Always",
            vmi("Scheduling", **condition("PodScheduled", "False", "Unschedulable")),
        ),
        (
            "ErrorPvcNotFound",
            "Always",
            vmi("Pending", **condition("Synchronized", "False", "FailedPvcNotFound")),
        ),
        ("ErrImagePull", "Always", vmi("Scheduling", **condition("Synchronized", "False", "ErrImagePull"))),
        (
            "ImagePullBackOff",
            "Always",
            vmi("Scheduling", **condition("Synchronized", "False", "ImagePullBackOff")),
        ),
        ("WaitingForReceiver", "WaitAsReceiver", vmi("WaitingForSync")),
        ("Unknown", "Always", vmi("Unknown")),
    ],
)
def test_printable_status(word: str, strategy: str, instance: dict[str, Any] | None) -> None:
    assert VMScene({"vm": vm(strategy), "vmi": instance}).printable() == word


def test_deletion_comes_before_all() -> None:
    assert VMScene({"vm": deleting(vm()), "vmi": vmi("Running")}).printable() == "Terminating"


@pytest.mark.parametrize(
    ("phase", "word"), [("Failed", "DataVolumeError"), ("ImportInProgress", "Provisioning")]
)
def test_volumes_are_told(phase: str, word: str) -> None:
    machine = vm()
    machine["spec"]["template"]["spec"]["volumes"].append({"name": "data", "dataVolume": {"name": "dv"}})
    volume = {"metadata": {"name": "dv", "namespace": "default"}, "status": {"phase": phase}}
    assert VMScene({"vm": machine, "vmi": None, "dataVolumes": [volume]}).printable() == word


def test_an_unbound_claim_is_told_of_a_vm_that_is_to_run() -> None:
    claim = {"metadata": {"name": "p", "namespace": "default"}, "status": {"phase": "Pending"}}
    for strategy, word in (("Always", "WaitingForVolumeBinding"), ("Halted", "Stopped")):
        machine = vm(strategy)
        volume = {"name": "data", "persistentVolumeClaim": {"claimName": "p"}}
        machine["spec"]["template"]["spec"]["volumes"].append(volume)
        assert VMScene({"vm": machine, "vmi": None, "persistentVolumeClaims": [claim]}).printable() == word


def test_conditions_follow_the_vmi() -> None:
    stale = [{"type": "Paused", "status": "True"}, {"type": "RestartRequired", "status": "True"}]
    instance = vmi(
        "Running",
        ran=True,
        conditions=[{"type": "Ready", "status": "True"}, {"type": "LiveMigratable", "status": "False"}],
    )
    output = VMScene({"vm": vm(status={"conditions": stale}), "vmi": instance}).reconcile()
    kinds = [one["type"] for one in output["vmStatusWritten"]["conditions"]]
    assert sorted(kinds) == ["LiveMigratable", "Ready", "RestartRequired"]
    assert output["vmStatusWritten"]["ready"] is True


def test_nothing_is_written_when_nothing_changed() -> None:
    scene = VMScene({"vm": vm(), "vmi": vmi("Running", ran=True)})
    scene.reconcile()
    scene.show()
    assert calls(scene.reconcile()) == []


def test_a_vmi_that_has_ended_is_let_go_after_the_status() -> None:
    output = VMScene({"vm": vm("Manual"), "vmi": vmi("Succeeded", ran=True)}).reconcile()
    assert calls(output) == ["update virtualmachines status", "patch virtualmachineinstances"]
    assert output["vmiAfter"]["finalizers"] == ["kubevirt.io/foregroundDeleteVirtualMachine"]
