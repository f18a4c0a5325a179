"""What a pod is waited with for, and what is told when it is refused."""

from __future__ import annotations

from typing import Any

import pytest

from kvnode.controller.ports import WARNING
from tests.controller.objects import call, calls, reasons, vmi
from tests.reference.vmicases import VMIScene

CLAIM = {
    "metadata": {"name": "data", "namespace": "default"},
    "spec": {"accessModes": ["ReadWriteOnce"], "volumeMode": "Filesystem"},
    "status": {"phase": "Bound"},
}


def on_claim(**source: Any) -> dict[str, Any]:
    instance = vmi("Pending")
    instance["spec"]["volumes"].append(
        {"name": "data", **(source or {"persistentVolumeClaim": {"claimName": "data"}})}
    )
    instance["spec"]["domain"]["devices"]["disks"].append({"name": "data", "disk": {"bus": "virtio"}})
    return instance


def look(instance: dict[str, Any], **more: Any) -> dict[str, Any]:
    return VMIScene({"vmi": instance, "pods": [], **more}).reconcile()


def owned(phase: str) -> dict[str, Any]:
    reference = {"kind": "DataVolume", "name": "data", "controller": True}
    claim = {**CLAIM, "metadata": {**CLAIM["metadata"], "ownerReferences": [reference]}}
    volume = {"metadata": {"name": "data", "namespace": "default"}, "status": {"phase": phase}}
    return {"persistentVolumeClaims": [claim], "dataVolumes": [volume]}


def test_a_missing_claim_is_waited_for() -> None:
    output = look(on_claim())
    assert calls(output) == ["update virtualmachineinstances"]
    assert reasons(output) == ["FailedPvcNotFound"]
    assert output["queue"]["result"] == "forgotten"
    told = {one["type"]: one["reason"] for one in output["vmiAfter"]["conditions"]}
    assert told["PodScheduled"] == "Unschedulable"
    assert told["Synchronized"] == "FailedPvcNotFound"


def test_a_claim_of_nobodys_is_ready() -> None:
    assert "create pods" in calls(look(on_claim(), persistentVolumeClaims=[CLAIM]))


@pytest.mark.parametrize(
    ("phase", "made"), [("Succeeded", True), ("ImportInProgress", False), ("Failed", False)]
)
def test_a_data_volume_is_waited_for(phase: str, made: bool) -> None:
    assert ("create pods" in calls(look(on_claim(), **owned(phase)))) is made


def test_first_consumer_gets_a_temporary_pod() -> None:
    output = look(on_claim(), **owned("WaitForFirstConsumer"))
    made = call(output, "create pods")["payload"]
    assert made["metadata"]["annotations"]["kubevirt.io/ephemeral-provisioning"] == "true"
    assert output["vmiAfter"]["phase"] == "Pending"


def test_no_pod_while_a_migration_runs() -> None:
    migration = {
        "metadata": {"name": "m", "namespace": "default"},
        "spec": {"vmiName": "testvm"},
        "status": {"phase": "Running"},
    }
    output = look(vmi("Pending"), migrations=[migration])
    assert "create pods" not in calls(output)
    assert output["queue"]["result"] == "rateLimited"


@pytest.mark.parametrize("error", ["Forbidden (text contains 'violates PodSecurity')", "InternalError"])
def test_a_refused_pod(error: str, monkeypatch: pytest.MonkeyPatch) -> None:
    errors = [{"verb": "create", "resource": "pods", "subresource": "", "error": error}]
    scene = VMIScene({"vmi": vmi("Pending"), "pods": [], "injectedErrors": errors})
    messages: list[str] = []

    def record(_obj: Any, kind: str, _reason: str, message: str) -> None:
        assert kind == WARNING
        messages.append(message)

    monkeypatch.setattr(scene.events, "record", record)
    output = scene.reconcile()
    assert output["queue"]["result"] == "rateLimited"
    assert output["expectationsAfter"]["podCreations"] == 0
    assert len(messages) == 1
    assert ("must be privileged" in messages[0]) is ("PodSecurity" in error)


def test_state_gets_a_claim() -> None:
    instance = vmi("Pending")
    instance["spec"]["domain"]["devices"]["tpm"] = {"persistent": True}
    default = {"storageclass.kubernetes.io/is-default-class": "true"}
    output = look(instance, storageClasses=[{"metadata": {"name": "fast", "annotations": default}}])
    made = call(output, "create persistentvolumeclaims")["payload"]
    assert made["metadata"]["labels"]["persistent-state-for"] == "testvm"
    assert made["spec"]["storageClassName"] == "fast"
    assert output["expectationsAfter"]["pvcCreations"] == 1
    assert "create pods" not in calls(output)


def test_state_without_a_storage_class() -> None:
    instance = vmi("Pending")
    instance["spec"]["domain"]["firmware"]["bootloader"] = {"efi": {"persistent": True}}
    output = look(instance)
    told = {one["type"]: one["reason"] for one in output["vmiAfter"]["conditions"]}
    assert told["Synchronized"] == "FailedBackendStorageCreate"
    assert output["expectationsAfter"]["pvcCreations"] == 0


def test_hyperv_clock_waits_for_a_frequency_once() -> None:
    instance = vmi("Pending")
    instance["spec"]["domain"]["features"] = {"hyperv": {"reenlightenment": {"enabled": True}}}
    first = look(instance)
    assert "create pods" not in calls(first)
    assert first["vmiAfter"]["topologyHints"] == {"tscFrequency": 0}
    instance["status"]["topologyHints"] = {"tscFrequency": 0}
    assert "create pods" in calls(look(instance))
