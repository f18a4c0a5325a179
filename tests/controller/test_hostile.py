"""Objects that no schema keeps out, as they are where no webhook is installed: only they themselves go without."""

from __future__ import annotations

import contextlib
import copy
import logging
import re
from collections.abc import Iterator
from typing import Any

import pytest

from kvnode.controller.manager import Manager
from kvnode.controller.names import VMI_FINALIZER
from kvnode.controller.shape import MALFORMED
from kvnode.kube.client import Client, PatchType
from kvnode.kube.errors import NotFound
from kvnode.kube.objects import Object
from kvnode.kube.resources import (
    EVENTS,
    VIRTUAL_MACHINE_INSTANCES,
    VIRTUAL_MACHINES,
    Resource,
)
from tests.cluster.cluster import Cluster
from tests.controller.objects import SPEC
from tests.controller.standin import StandIn
from tests.controller.test_manager import eventually, machine
from tests.controller.test_process import ready
from tests.kube.loops import minutes
from tests.kube.support import background, client_of

pytestmark = pytest.mark.cluster

_PYTHON = re.compile(
    r"object has no|object is not|(Type|Attribute|Key|Index)Error|Traceback|unhashable|argument"
)

ODD_PARTS: dict[str, dict[str, Any]] = {
    "volumes-text": {"volumes": "x"},
    "volumes-number": {"volumes": 1},
    "volumes-null": {"volumes": [None]},
    "volumes-lists": {"volumes": [[]]},
    "volumes-map": {"volumes": {"a": 1}},
    "volume-source-text": {"volumes": [{"name": "root", "dataVolume": "x"}]},
    "claim-list": {"volumes": [{"name": "root", "persistentVolumeClaim": [1]}]},
    "networks-null": {"networks": [None]},
    "tolerations-text": {"tolerations": "x"},
    "affinity-list": {"affinity": [1]},
    "node-selector-list": {"nodeSelector": ["a"]},
    "grace-text": {"terminationGracePeriodSeconds": "soon"},
    "memory-list": {"domain": {"devices": {}, "memory": ["1Gi"]}},
    "cpu-text": {"domain": {"devices": {}, "cpu": "4"}},
    "cpu-sockets-text": {"domain": {"devices": {}, "cpu": {"sockets": "many"}}},
    "firmware-text": {"domain": {"devices": {}, "firmware": "bios"}},
    "disks-null": {"domain": {"devices": {"disks": [None]}}},
    "interfaces-text": {"domain": {"devices": {"interfaces": "x"}}},
    "requests-text": {"domain": {"devices": {}, "resources": {"requests": "1Gi"}}},
    "request-odd": {"domain": {"devices": {}, "resources": {"requests": {"memory": {"a": 1}}}}},
    "all-null": {"domain": {"devices": {}, "cpu": None, "memory": None}, "volumes": None, "networks": None},
}
"""Name of a machine -> what is odd in its instance's spec."""

ODD_MACHINES: dict[str, dict[str, Any]] = {
    "data-volumes-text": {"dataVolumeTemplates": "x"},
    "data-volumes-null": {"dataVolumeTemplates": [None]},
    "data-volumes-odd": {"dataVolumeTemplates": [{"metadata": "x", "spec": 1}]},
    "template-metadata": {"template": {"metadata": {"labels": ["a"], "annotations": "b"}, "spec": SPEC}},
    "template-empty": {"template": {}},
    "strategy-unknown": {"runStrategy": "Sometimes"},
    "instance-type": {"instancetype": "x", "preference": [1]},
    "both": {"running": True},
    "update-volumes": {"updateVolumesStrategy": 4},
}
"""Name of a machine -> what is odd in its spec."""

ODD_STATUS: dict[str, dict[str, Any]] = {
    "conditions-text": {"conditions": "x"},
    "conditions-null": {"conditions": [None]},
    "requests-odd": {"stateChangeRequests": ["Start"]},
    "requests-map": {"stateChangeRequests": {"action": "Start"}},
    "failure-text": {"startFailure": "often"},
    "failure-count": {"startFailure": {"consecutiveFailCount": "x", "retryAfterTimestamp": [1]}},
    "volume-requests": {"volumeRequests": "x"},
    "generation-text": {"observedGeneration": "x"},
}
"""Name of a machine -> what somebody wrote into its status."""

ODD_INSTANCES: dict[str, dict[str, Any]] = {
    "i-conditions": {"conditions": "x"},
    "i-conditions-null": {"conditions": [None]},
    "i-phase-odd": {"phase": "Dancing"},
    "i-times": {"phase": "Running", "phaseTransitionTimestamps": "x"},
    "i-migration": {"phase": "Running", "migrationState": "x"},
    "i-pods": {"activePods": [1]},
    "i-volumes": {"phase": "Scheduling", "volumeStatus": [None]},
    "i-interfaces": {"phase": "Running", "interfaces": "x"},
    "i-node": {"phase": "Running", "nodeName": "no such/node\n"},
    "i-memory": {"phase": "Running", "memory": [1], "currentCPUTopology": "x"},
}
"""Name of an instance without a machine -> what is in its status."""


def odd_machines(namespace: str) -> Iterator[Object]:
    for name, part in ODD_PARTS.items():
        made = machine(namespace, name)
        made["spec"]["template"]["spec"] |= copy.deepcopy(part)
        yield made
    for name, spec in ODD_MACHINES.items():
        made = machine(namespace, name)
        made["spec"] |= copy.deepcopy(spec)
        yield made


def odd_instances(namespace: str) -> Iterator[Object]:
    plain = {"apiVersion": "kubevirt.io/v1", "kind": "VirtualMachineInstance"}
    for name, part in ODD_PARTS.items():
        meta = {"name": f"i-{name}", "namespace": namespace, "finalizers": [VMI_FINALIZER]}
        yield {**plain, "metadata": meta, "spec": {**copy.deepcopy(SPEC), **copy.deepcopy(part)}}
    for name, status in ODD_INSTANCES.items():
        meta = {"name": name, "namespace": namespace, "finalizers": [VMI_FINALIZER]}
        yield {**plain, "metadata": meta, "spec": copy.deepcopy(SPEC), "status": status}


async def all_gone(client: Client, namespace: str) -> None:
    """Delete all machines and instances, and wait until there are none."""
    kinds: tuple[Resource, ...] = (VIRTUAL_MACHINES, VIRTUAL_MACHINE_INSTANCES)
    for resource in kinds:
        for one in await client.list_all(resource, namespace):
            with contextlib.suppress(NotFound):
                await client.delete(resource, one["metadata"]["name"], namespace)

    async def names() -> list[str]:
        return [
            f"{one['kind']} {one['metadata']['name']}"
            for resource in kinds
            for one in await client.list_all(resource, namespace)
        ]

    async def none() -> bool:
        return not await names()

    try:
        await eventually(none, 180)
    except TimeoutError:
        assert await names() == []


@minutes(4)
async def test_objects_of_odd_shape(
    control_plane: Cluster, namespace: str, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    async with client_of(control_plane) as user:
        for made in odd_machines(namespace):
            await user.create(VIRTUAL_MACHINES, made)
        for made in odd_instances(namespace):
            await user.create(VIRTUAL_MACHINE_INSTANCES, made)
        for name, status in ODD_STATUS.items():
            await user.create(VIRTUAL_MACHINES, machine(namespace, f"s-{name}"))
            patch = {"status": status}
            await user.patch(
                VIRTUAL_MACHINES, f"s-{name}", namespace, patch, PatchType.MERGE, subresource="status"
            )
        nodes = StandIn(user, namespace)
        async with background(nodes.run(), Manager(user, namespace=namespace).run()):
            for number in range(3):
                await user.create(VIRTUAL_MACHINES, machine(namespace, f"vm{number}"))
            await eventually(lambda: _ready(user, namespace, {"vm0", "vm1", "vm2"}), 180)
            await eventually(lambda: _told(user, namespace, "volumes-text"))
            await all_gone(user, namespace)
    told = [record.getMessage() for record in caplog.records if record.levelno > logging.DEBUG]
    assert [line for line in told if _PYTHON.search(line) or "\n" in line] == []
    assert [one.getMessage() for one in caplog.records if one.exc_info and one.levelno > logging.DEBUG] == []
    assert any("spec.template.spec.volumes: must be a list, not a string" in line for line in told)


async def _ready(user: Client, namespace: str, names: set[str]) -> bool:
    return names <= set(await ready(user, namespace))


async def _told(user: Client, namespace: str, name: str) -> bool:
    """Whether the author of a machine is told what is wrong with it."""
    events = await user.list_all(EVENTS, namespace, field_selector=f"involvedObject.name={name}")
    return any(one["reason"] == MALFORMED and "volumes" in one["message"] for one in events)
