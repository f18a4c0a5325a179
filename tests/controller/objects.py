"""Objects to look at: each function gives the ordinary one, with changes."""

from __future__ import annotations

import copy
from typing import Any

OBSERVED = {
    "kubevirt.io/latest-observed-api-version": "v1",
    "kubevirt.io/storage-observed-api-version": "v1",
}
SPEC: dict[str, Any] = {
    "architecture": "amd64",
    "domain": {
        "cpu": {"cores": 1, "sockets": 1, "threads": 1},
        "devices": {
            "disks": [{"name": "root", "disk": {"bus": "virtio"}}],
            "interfaces": [{"name": "default", "masquerade": {}}],
        },
        "firmware": {"uuid": "5d307ca9-b3ef-428c-8861-06e72d69f223"},
        "machine": {"type": "q35"},
        "memory": {"guest": "1Gi"},
        "resources": {"requests": {"memory": "1Gi"}},
    },
    "networks": [{"name": "default", "pod": {}}],
    "volumes": [{"name": "root", "containerDisk": {"image": "example.test/disk:1"}}],
}


def vm(strategy: str = "Always", *, status: dict[str, Any] | None = None, **spec: Any) -> dict[str, Any]:
    """A VM that the controller has seen before."""
    return {
        "apiVersion": "kubevirt.io/v1",
        "kind": "VirtualMachine",
        "metadata": {
            "name": "testvm",
            "namespace": "default",
            "uid": "vm-uid",
            "generation": 1,
            "resourceVersion": "1",
            "annotations": dict(OBSERVED),
            "finalizers": ["kubevirt.io/virtualMachineControllerFinalize"],
        },
        "spec": {
            "runStrategy": strategy,
            "template": {"metadata": {"labels": {"app": "x"}}, "spec": copy.deepcopy(SPEC)},
            **spec,
        },
        "status": status or {},
    }


def vmi(phase: str = "Running", *, ran: bool = False, **status: Any) -> dict[str, Any]:
    """The VMI that the controller made of that VM."""
    seen = [*(["Running"] if ran else []), phase]
    return {
        "apiVersion": "kubevirt.io/v1",
        "kind": "VirtualMachineInstance",
        "metadata": {
            "name": "testvm",
            "namespace": "default",
            "uid": "vmi-uid",
            "resourceVersion": "1",
            "annotations": {**OBSERVED, "kubevirt.io/vm-generation": "1"},
            "labels": {"app": "x"},
            "finalizers": [
                "kubevirt.io/virtualMachineControllerFinalize",
                "kubevirt.io/foregroundDeleteVirtualMachine",
            ],
            "ownerReferences": [
                {
                    "apiVersion": "kubevirt.io/v1",
                    "kind": "VirtualMachine",
                    "name": "testvm",
                    "uid": "vm-uid",
                    "controller": True,
                    "blockOwnerDeletion": True,
                }
            ],
        },
        "spec": copy.deepcopy(SPEC),
        "status": {
            "phase": phase,
            "phaseTransitionTimestamps": [
                {"phase": one, "phaseTransitionTimestamp": "<now-60s>"} for one in seen
            ],
            "virtualMachineRevisionName": "revision-start-vm-vm-uid-1",
            **status,
        },
    }


def pod(phase: str = "Running", *, node: str = "node01", **metadata: Any) -> dict[str, Any]:
    """The launcher pod of that VMI, ready to be handed over when it runs."""
    running = phase == "Running"
    state = {"running": {}} if running else {"waiting": {"reason": "ContainerCreating"}}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": "virt-launcher-testvm-abcde",
            "namespace": "default",
            "uid": "pod-uid",
            "resourceVersion": "1",
            "creationTimestamp": "<now-50s>",
            "annotations": {"descheduler.alpha.kubernetes.io/request-evict-only": ""},
            "ownerReferences": [{"kind": "VirtualMachineInstance", "uid": "vmi-uid", "controller": True}],
            **metadata,
        },
        "spec": {
            "nodeName": node,
            "containers": [{"name": "compute", "image": "example.test/virt-launcher:1"}],
        },
        "status": {
            "phase": phase,
            "qosClass": "Burstable",
            "conditions": [{"type": "kubevirt.io/virtual-machine-unpaused", "status": "True"}],
            "containerStatuses": [{"name": "compute", "ready": running, "state": state}],
        },
    }


def deleting(obj: dict[str, Any]) -> dict[str, Any]:
    """The object, told to go."""
    obj["metadata"]["deletionTimestamp"] = "<now-5s>"
    return obj


def calls(output: dict[str, Any]) -> list[str]:
    """The calls of a pass, in few words."""
    return [
        " ".join(filter(None, (one["verb"], one["resource"], one.get("subresource"))))
        for one in output.get("actions", ())
    ]


def call(output: dict[str, Any], words: str) -> dict[str, Any]:
    """The one call of those words."""
    (found,) = [one for one, text in zip(output["actions"], calls(output), strict=True) if text == words]
    return dict(found)


def reasons(output: dict[str, Any]) -> list[str]:
    """The events of a pass."""
    return [one["reason"] for one in output.get("events", ())]
