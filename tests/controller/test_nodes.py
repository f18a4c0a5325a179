"""A node that is lost, on a real API server; what runs on nodes is played by the test."""

from __future__ import annotations

import pytest

from kvnode.controller.manager import Manager
from kvnode.kube.client import PatchType
from kvnode.kube.objects import Object, timestamp, utc_now
from kvnode.kube.resources import EVENTS, NODES, PODS, VIRTUAL_MACHINE_INSTANCES, VIRTUAL_MACHINES
from tests.cluster.cluster import Cluster
from tests.controller import standin
from tests.controller.standin import StandIn
from tests.controller.test_manager import Played, eventually, machine
from tests.kube.loops import real_time
from tests.kube.support import background, client_of

pytestmark = pytest.mark.cluster

HEARTBEAT = "kubevirt.io/heartbeat"
SCHEDULABLE = "kubevirt.io/schedulable"


@real_time
async def test_a_vmi_of_a_lost_node_fails_once_its_pod_is_gone(
    control_plane: Cluster, namespace: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    name = f"node-of-{namespace}"
    monkeypatch.setattr(standin, "NODE", name)
    async with (
        client_of(control_plane) as user,
        background(Manager(user, namespace=namespace).run(), StandIn(user, namespace).run()),
    ):
        meta = {
            "name": name,
            "labels": {SCHEDULABLE: "true"},
            "annotations": {HEARTBEAT: timestamp(utc_now())},
        }
        await user.create(NODES, {"apiVersion": "v1", "kind": "Node", "metadata": meta})
        try:
            played = Played(user, namespace, "testvm")
            await user.create(VIRTUAL_MACHINES, machine(namespace, "testvm", "Once"))
            await played.vm("Running", ready=True)

            silent = {"metadata": {"annotations": {HEARTBEAT: "2020-01-01T00:00:00Z"}}}
            await user.patch(NODES, name, "", silent, PatchType.MERGE)

            async def marked() -> Object | None:
                found = await user.get(NODES, name)
                return found if found["metadata"]["labels"][SCHEDULABLE] == "false" else None

            await eventually(marked)
            assert (await played.vmi("Running"))["status"]["nodeName"] == name  # its pod may run yet

            pod = await eventually(played.pod)
            ended = {"status": {"phase": "Failed"}}
            await user.patch(
                PODS, pod["metadata"]["name"], namespace, ended, PatchType.STRATEGIC, subresource="status"
            )
            again = {"metadata": {"labels": {"looked": "at"}}}  # rather than wait for the next minute
            await user.patch(NODES, name, "", again, PatchType.MERGE)
            assert (await played.vmi("Failed"))["status"]["reason"] == "NodeUnresponsive"

            async def told() -> bool:
                events = await user.list_all(EVENTS, "default") + await user.list_all(EVENTS, namespace)
                about = {
                    (one["involvedObject"]["kind"], one["involvedObject"]["name"])
                    for one in events
                    if one["reason"] == "NodeUnresponsive"
                }
                return {("Node", name), ("VirtualMachineInstance", "testvm")} <= about

            await eventually(told)
        finally:
            await user.delete(NODES, name)


@real_time
async def test_a_vmi_on_a_node_that_never_was_fails_without_its_pod(
    control_plane: Cluster, namespace: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("kvnode.controller.wiring.SOON", 0.1)
    async with (
        client_of(control_plane) as user,
        background(Manager(user, namespace=namespace).run()),
    ):
        vmi = {
            "apiVersion": "kubevirt.io/v1",
            "kind": "VirtualMachineInstance",
            "metadata": {"name": "left", "namespace": namespace},
            "spec": machine(namespace, "left")["spec"]["template"]["spec"],
            # A phase that the VMI's own controller does not judge pods by.
            "status": {"phase": "WaitingForSync", "nodeName": "never-was"},
        }
        await user.create(VIRTUAL_MACHINE_INSTANCES, vmi)
        left = await Played(user, namespace, "left").vmi("Failed")
        assert left["status"]["reason"] == "NodeUnresponsive"
