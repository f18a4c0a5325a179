"""Admission of VMs."""

from __future__ import annotations

import copy
import re
from typing import Any

import pytest

from kvnode.webhook.handlers import MUTATE, VALIDATE
from tests.webhook.ask import CONTROLLER, answer, mutated, refused, review, settings, vm

UUID = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")
KIND = {"kind": "VirtualMachine"}
VOLUMES = [{"name": "root", "dataVolume": {"name": "dv"}}]
DATA_VOLUME = {
    "metadata": {"name": "dv"},
    "spec": {"source": {"blank": {}}, "storage": {"resources": {"requests": {"storage": "1Gi"}}}},
}


def template(made: dict[str, Any]) -> Any:
    return made["spec"]["template"]["spec"]


def test_a_new_one_is_given_an_identity_and_a_machine() -> None:
    made = mutated(vm(), known=settings(arch="arm64"), **KIND)
    spec = template(made)
    assert spec["architecture"] == "arm64"
    assert spec["domain"]["machine"] == {"type": "virt"}
    firmware = spec["domain"]["firmware"]
    assert UUID.fullmatch(firmware["uuid"])
    assert UUID.fullmatch(firmware["serial"])
    assert firmware["uuid"] != firmware["serial"]
    annotations = made["spec"]["template"]["metadata"]["annotations"]
    assert annotations == {"kubevirt.io/pci-topology-version": "v3"}


def test_what_the_author_wrote_stays() -> None:
    one = vm()
    domain = template(one)["domain"]
    domain |= {"machine": {"type": "pc-q35-9.0"}, "firmware": {"uuid": "u", "serial": "s"}}
    template(one)["architecture"] = "amd64"
    one["spec"]["template"]["metadata"] = {"annotations": {"kubevirt.io/pci-topology-version": "v2"}}
    assert mutated(one, **KIND) == one


def test_an_old_one_is_given_no_identity() -> None:
    made = mutated(vm(), vm(), **KIND)
    assert "firmware" not in template(made)["domain"]
    assert "metadata" not in made["spec"]["template"]
    assert template(made)["domain"]["machine"] == {"type": "q35"}
    assert mutated(made, made, **KIND) == made


def test_nothing_else_is_written_into_the_template() -> None:
    made = mutated(vm(), **KIND)
    assert set(template(made)) == {"architecture", "domain"}
    assert set(template(made)["domain"]) == {"devices", "memory", "machine", "firmware"}


def test_one_that_goes_is_let_go_whatever_it_is() -> None:
    gone = {"metadata": {"deletionTimestamp": "2026-01-01T00:00:00Z"}, "spec": {"template": 7}}
    assert mutated(gone, gone, **KIND) == gone
    assert refused(gone, gone, **KIND) == []


@pytest.mark.parametrize(
    "spec", [{}, {"template": None}, {"template": {}}, {"template": 7}, {"template": {"spec": []}}]
)
def test_without_a_template_it_is_nothing(spec: dict[str, Any]) -> None:
    one = {**vm(), "spec": {"runStrategy": "Always", **spec}}
    assert all(field.startswith("spec.template") for field in refused(one, **KIND))
    assert not answer(VALIDATE, review(one, **KIND))["allowed"]
    response = answer(MUTATE, review(one, **KIND))
    assert response["allowed"] == (spec == {"template": {}})


@pytest.mark.parametrize(
    ("given", "gates", "fields"),
    [
        ({"runStrategy": "Always"}, [], []),
        ({"runStrategy": "RerunOnFailure"}, [], []),
        ({"runStrategy": "Manual"}, [], []),
        ({"runStrategy": "Halted"}, [], []),
        ({"runStrategy": "Once"}, [], []),
        ({"running": False}, [], []),
        ({}, [], ["spec.running"]),
        ({"running": True, "runStrategy": "Always"}, [], ["spec.running"]),
        ({"runStrategy": "Sometimes"}, [], ["spec.runStrategy"]),
        ({"runStrategy": ""}, [], ["spec.runStrategy"]),
        ({"runStrategy": "WaitAsReceiver"}, [], ["spec.runStrategy"]),
        ({"runStrategy": "WaitAsReceiver"}, ["DecentralizedLiveMigration"], []),
        ({"runStrategy": 7}, [], ["spec.runStrategy"]),
        ({"runStrategy": "Always", "instancetype": {"name": "u1.small"}}, [], ["spec.instancetype"]),
        ({"runStrategy": "Always", "preference": {"name": "fedora"}}, [], ["spec.preference"]),
        ({"runStrategy": "Always", "runStratgy": "Once"}, [], ["spec.runStratgy"]),
    ],
)
def test_when_it_runs(given: dict[str, Any], gates: list[str], fields: list[str]) -> None:
    known = settings({"developerConfiguration": {"featureGates": gates}})
    assert refused(vm(None, **given), known=known, **KIND) == fields


def test_running_is_warned_of() -> None:
    response = answer(VALIDATE, review(vm(None, running=True), **KIND))
    assert response["allowed"]
    assert response["warnings"] == ["spec.running is deprecated: use spec.runStrategy"]
    assert "warnings" not in answer(VALIDATE, review(vm(), **KIND))


@pytest.mark.parametrize(
    ("path", "value", "field"),
    [
        ("cpu", {"sockets": 3, "maxSockets": 2}, "domain.cpu.sockets"),
        ("resources", {"requests": {"memory": "-1"}}, "domain.resources.requests.memory"),
        ("machine", {"type": "pc"}, "domain.machine.type"),
        ("memory", {"guest": "1Gi", "maxGuest": "1025Ki"}, "domain.memory.guest"),
        ("memory", {"guest": "512Mi", "maxGuest": "1Gi"}, "domain.memory.guest"),
    ],
)
def test_the_template_keeps_the_rules_of_an_instance(path: str, value: Any, field: str) -> None:
    one = vm()
    template(one)["domain"][path] = value
    assert refused(one, **KIND) == [f"spec.template.spec.{field}"]


def test_a_template_needs_no_memory_of_its_own_until_it_runs() -> None:
    one = vm()
    del template(one)["domain"]["memory"]
    assert refused(one, **KIND) == []


def test_reserved_labels_in_a_template() -> None:
    one = vm()
    one["spec"]["template"]["metadata"] = {"labels": {"kubevirt.io/nodeName": "x"}}
    assert refused(one, **KIND) == ["spec.template.metadata.labels"]
    assert refused(one, user=CONTROLLER, **KIND) == []


def test_what_was_discontinued_stays_in_old_ones() -> None:
    one = vm()
    template(one)["networks"] = [{"name": "default", "pod": {}}]
    template(one)["domain"]["devices"]["interfaces"] = [{"name": "default", "slirp": {}}]
    field = "spec.template.spec.domain.devices.interfaces[0].slirp"
    assert field in refused(one, **KIND)
    assert field not in refused(one, one, **KIND)


@pytest.mark.parametrize(
    ("spec", "field"),
    [
        ({}, None),
        ({"source": None, "sourceRef": {"kind": "DataSource", "name": "x"}}, None),
        ({"source": None, "storage": {"dataSource": {"kind": "VolumeSnapshot", "name": "x"}}}, None),
        ({"storage": {"dataSource": {"kind": "VolumeSnapshot", "name": "x"}}}, "source"),
        ({"source": None}, "source.sourceRef"),
        ({"source": {}}, "source"),
        ({"source": {"blank": {}, "upload": {}}}, "source"),
        ({"storage": None}, "PVC.Storage"),
        ({"pvc": {}}, "PVC.Storage"),
    ],
)
def test_templates_of_data_volumes(spec: dict[str, Any], field: str | None) -> None:
    made = copy.deepcopy(DATA_VOLUME)
    made["spec"] = {**made["spec"], **spec}
    one = vm(dataVolumeTemplates=[made])
    template(one)["volumes"] = VOLUMES
    assert refused(one, **KIND) == ([] if field is None else [f"spec.dataVolumeTemplate[0].{field}"])


def test_a_data_volume_is_named_and_used() -> None:
    unused = vm(dataVolumeTemplates=[DATA_VOLUME])
    assert refused(unused, **KIND) == ["spec.dataVolumeTemplate[0]"]
    nameless = vm(dataVolumeTemplates=[{**DATA_VOLUME, "metadata": {}}])
    assert refused(nameless, **KIND) == ["spec.dataVolumeTemplate[0].name"]
    claimed = vm(dataVolumeTemplates=[DATA_VOLUME])
    template(claimed)["volumes"] = [{"name": "root", "persistentVolumeClaim": {"claimName": "dv"}}]
    assert refused(claimed, **KIND) == []


def test_a_data_volume_is_in_the_vm_s_namespace_unless_it_always_was_elsewhere() -> None:
    def one(namespace: str) -> dict[str, Any]:
        made = vm(dataVolumeTemplates=[{**DATA_VOLUME, "metadata": {"name": "dv", "namespace": namespace}}])
        template(made)["volumes"] = VOLUMES
        return made

    assert refused(one("default"), **KIND) == []
    assert refused(one("other"), **KIND) == ["spec.dataVolumeTemplates[0]"]
    assert refused(one("other"), one("other"), **KIND) == []
    assert refused(one("other"), one("another"), **KIND) == ["spec.dataVolumeTemplates[0]"]


def test_what_a_snapshot_and_a_restore_keep_still() -> None:
    old = vm()
    other_volumes, halted = vm(), vm("Halted")
    template(other_volumes)["volumes"] = [{"name": "x", "emptyDisk": {"capacity": "1Gi"}}]
    for status, kept in (
        ({"snapshotInProgress": "s"}, [other_volumes, halted]),
        ({"restoreInProgress": "r"}, [halted]),
        ({}, []),
    ):
        for new in (other_volumes, halted, vm()):
            fields = refused({**new, "status": status}, old, **KIND)
            assert fields == (["spec"] if new in kept else []), (status, new)
