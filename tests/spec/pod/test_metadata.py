"""Names, labels and annotations."""

from __future__ import annotations

import json

import pytest

from kvnode.spec.pod import LauncherSettings
from tests.spec.pod.helpers import gates, instance, pod

LONG = "n" * 70


def test_labels_and_owner() -> None:
    metadata = pod(instance(labels={"app": "x", "kubevirt.io": "mine"}))["metadata"]
    assert metadata["generateName"] == "virt-launcher-t-"
    assert metadata["labels"] == {
        "app": "x",
        "kubevirt.io": "virt-launcher",
        "kubevirt.io/created-by": "u-1",
        "vm.kubevirt.io/name": "t",
        "vmi.kubevirt.io/id": "t",
    }
    (owner,) = metadata["ownerReferences"]
    assert owner == {
        "apiVersion": "kubevirt.io/v1",
        "kind": "VirtualMachineInstance",
        "name": "t",
        "uid": "u-1",
        "controller": True,
        "blockOwnerDeletion": True,
    }


@pytest.mark.parametrize("length", [238, 239, 253])
def test_the_longest_names_have_pods_too(length: int) -> None:
    made = pod(instance(name="n" * length))["metadata"]["generateName"]
    assert made == "virt-launcher-" + "n" * 238 + "-"
    assert len(made) == 253
    dotted = pod(instance(name="n" * 237 + "." + "x" * (length - 238)))["metadata"]["generateName"]
    assert dotted == "virt-launcher-" + "n" * 237 + "-"


@pytest.mark.parametrize(
    ("name", "asked", "hostname", "identity"),
    [
        ("web", None, "web", "web"),
        ("web.example", None, "web", "web.example"),
        ("web", "db", "db", "web"),
        ("n" * 63, None, "n" * 63, "n" * 63),
        (LONG, None, "n" * 63, "n" * 54 + "-2be92776"),
        ("n" * 62 + "-b", None, "n" * 62, "n" * 54 + "-a49fa0ab"),
    ],
)
def test_hostname_and_identity(name: str, asked: str | None, hostname: str, identity: str) -> None:
    vmi = instance(name=name, **({} if asked is None else {"hostname": asked}))
    made = pod(vmi)
    labels = made["metadata"]["labels"]
    assert (made["spec"]["hostname"], labels["vm.kubevirt.io/name"]) == (hostname, hostname)
    assert labels["vmi.kubevirt.io/id"] == identity


def test_annotations_of_the_vm_come_along_but_for_bookkeeping() -> None:
    dropped = {
        "kubectl.kubernetes.io/last-applied-configuration": "{}",
        "kubevirt.io/storage-observed-api-version": "v1",
        "kubevirt.io/latest-observed-api-version": "v1",
    }
    annotations = pod(instance(annotations={"mine": "1", **dropped}))["metadata"]["annotations"]
    assert annotations["mine"] == "1"
    assert not dropped.keys() & annotations.keys()
    assert annotations["kubectl.kubernetes.io/default-container"] == "compute"
    assert annotations["kubevirt.io/domain"] == "t"


def test_istio_reads_a_label() -> None:
    vmi = instance(annotations={"sidecar.istio.io/inject": "true"})
    assert pod(vmi)["metadata"]["labels"]["sidecar.istio.io/inject"] == "true"


def test_backup_hooks_freeze_the_guest() -> None:
    annotations = pod(instance())["metadata"]["annotations"]
    command = json.loads(annotations["pre.hook.backup.velero.io/command"])
    assert command == ["/usr/bin/virt-freezer", "--freeze", "--name", "t", "--namespace", "ns1"]
    assert json.loads(annotations["post.hook.backup.velero.io/command"])[1] == "--unfreeze"
    assert annotations["pre.hook.backup.velero.io/timeout"] == "60s"


@pytest.mark.parametrize(
    ("said", "cluster", "there"),
    [
        (None, False, True),
        (None, True, False),
        ("true", False, False),
        ("false", True, True),
        ("T", False, False),
        ("yes", False, True),
    ],
)
def test_backup_hooks_can_be_left_out(said: str | None, cluster: bool, there: bool) -> None:
    vmi = instance(annotations={} if said is None else {"kubevirt.io/skip-backup-hooks": said})
    annotations = pod(vmi, settings=LauncherSettings(skip_backup_hooks=cluster))["metadata"]["annotations"]
    assert ("pre.hook.backup.velero.io/container" in annotations) == there


def test_the_overhead_is_reported_unless_turned_off() -> None:
    key = "kubevirt.io/memory-overhead-bytes"
    assert pod(instance(cpu={"cores": 1}))["metadata"]["annotations"][key] == "281018368"
    off = gates(off=("VmiMemoryOverheadReport",))
    assert key not in pod(instance(), off)["metadata"]["annotations"]
