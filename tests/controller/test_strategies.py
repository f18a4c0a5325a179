"""What becomes of machines by their run strategies, on a real API server; nodes are played by the test."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager, suppress
from dataclasses import dataclass
from typing import Any

import pytest

from kvnode.controller.manager import Manager
from kvnode.kube.client import Client, PatchType
from kvnode.kube.errors import NotFound
from kvnode.kube.objects import Object
from kvnode.kube.resources import (
    DATA_VOLUMES,
    NAMESPACES,
    PERSISTENT_VOLUME_CLAIMS,
    VIRTUAL_MACHINE_INSTANCES,
    VIRTUAL_MACHINES,
)
from tests.cluster.cluster import Cluster
from tests.cluster.errors import ClusterError
from tests.controller.standin import StandIn
from tests.controller.test_manager import Played, eventually, machine
from tests.controller.test_rights import await_served, kind_of, path_of
from tests.kube.loops import real_time
from tests.kube.support import background, client_of

pytestmark = pytest.mark.cluster

A_WHILE = 1.0
"""Seconds in which something that is not to happen would have happened."""


@dataclass
class Machine(Played):
    """One machine, its user, and the node that it runs on."""

    def __init__(self, client: Client, namespace: str) -> None:
        super().__init__(client, namespace, "testvm")

    async def make(self, strategy: str, **spec: Any) -> None:
        made = machine(self.namespace, self.name, strategy)
        made["spec"]["template"]["spec"] |= spec
        await self.client.create(VIRTUAL_MACHINES, made)

    async def ask(self, *requests: Object) -> None:
        """Write state-change requests, as the start, stop and restart verbs do."""
        patch = {"status": {"stateChangeRequests": list(requests)}}
        await self.client.patch(
            VIRTUAL_MACHINES, self.name, self.namespace, patch, PatchType.MERGE, subresource="status"
        )

    async def change(self, path: str, value: Any) -> None:
        patch = [{"op": "add", "path": path, "value": value}]
        await self.client.patch(VIRTUAL_MACHINES, self.name, self.namespace, patch)

    async def uid(self) -> str:
        """Of its VMI, "" for none."""
        try:
            found = await self.client.get(VIRTUAL_MACHINE_INSTANCES, self.name, self.namespace)
        except NotFound:
            return ""
        return str(found["metadata"]["uid"])

    async def runs(self) -> str:
        """Wait until it does; the UID of its VMI."""
        await self.vm("Running", ready=True)
        return await self.uid()

    async def gone(self) -> None:
        """Wait until it has no VMI."""

        async def check() -> bool:
            return not await self.uid()

        await eventually(check)

    async def condition(self, kind: str, **wanted: str) -> Object:
        async def check() -> Object | None:
            found = await self.client.get(VIRTUAL_MACHINES, self.name, self.namespace)
            for one in (found.get("status") or {}).get("conditions") or ():
                if one["type"] == kind and wanted.items() <= one.items():
                    return dict(one)
            return None

        found: Object = await eventually(check)
        return found

    async def bind(self, claim: str) -> None:
        """Be the volumes' controller."""
        bound = {"status": {"phase": "Bound"}}
        await self.client.patch(
            PERSISTENT_VOLUME_CLAIMS, claim, self.namespace, bound, PatchType.MERGE, subresource="status"
        )

    async def end(self, how: str, before: str) -> None:
        """Let the guest end; only of that VMI."""
        assert await self.uid() == before
        await self.become(how)

    async def anew(self, before: str) -> str:
        """Wait until another VMI runs."""

        async def check() -> bool:
            return await self.uid() not in ("", before)

        await eventually(check)
        return await self.runs()


@asynccontextmanager
async def looked_after(cluster: Cluster, namespace: str, node: bool = True) -> AsyncIterator[Machine]:
    async with client_of(cluster) as user:
        work = [Manager(user, namespace=namespace).run()]
        work += [StandIn(user, namespace).run()] if node else []
        async with background(*work):
            yield Machine(user, namespace)


@real_time
async def test_always(control_plane: Cluster, namespace: str) -> None:
    async with looked_after(control_plane, namespace) as it:
        await it.make("Always")
        first = await it.runs()
        await it.end("Succeeded", first)
        second = await it.anew(first)
        await it.end("Failed", second)
        third = await it.anew(second)
        await it.ask({"action": "Stop", "uid": third}, {"action": "Start"})
        fourth = await it.anew(third)
        await it.ask({"action": "Stop", "uid": third})  # of one that is long gone
        await asyncio.sleep(A_WHILE)
        assert await it.uid() == fourth
        await it.change("/spec/runStrategy", "Halted")
        await it.vm("Stopped")
        await it.gone()


@real_time
async def test_rerun_on_failure(control_plane: Cluster, namespace: str) -> None:
    async with looked_after(control_plane, namespace) as it:
        await it.make("RerunOnFailure")
        first = await it.runs()
        await it.end("Failed", first)
        second = await it.anew(first)
        await it.end("Succeeded", second)
        await it.gone()
        await it.vm("Stopped")
        await asyncio.sleep(A_WHILE)
        assert not await it.uid()
        await it.ask({"action": "Start"})
        third = await it.runs()
        await it.ask({"action": "Stop", "uid": third})
        await it.gone()
        await it.vm("Stopped")


@real_time
async def test_manual(control_plane: Cluster, namespace: str) -> None:
    async with looked_after(control_plane, namespace) as it:
        await it.make("Manual")
        await it.vm("Stopped")
        await asyncio.sleep(A_WHILE)
        assert not await it.uid()
        await it.ask({"action": "Start", "data": {"paused": "true"}})
        first = await it.runs()
        made = await it.vmi("Running")
        assert made["spec"]["startStrategy"] == "Paused"
        await it.end("Failed", first)
        await it.vm("Stopped")
        await asyncio.sleep(A_WHILE)
        assert await it.uid() == first  # it is kept as it ended
        await it.ask({"action": "Stop", "uid": first}, {"action": "Start"})
        second = await it.anew(first)
        await it.ask({"action": "Stop", "uid": second})
        await it.gone()


@real_time
async def test_halted(control_plane: Cluster, namespace: str) -> None:
    async with looked_after(control_plane, namespace) as it:
        await it.make("Halted")
        await it.vm("Stopped")
        await it.ask({"action": "Start"})
        await it.runs()
        found = await it.client.get(VIRTUAL_MACHINES, it.name, namespace)
        assert found["spec"]["runStrategy"] == "Always"
        assert not found["status"].get("stateChangeRequests")
        assert not [one for one in found["status"]["conditions"] if one["type"] == "Failure"]


@real_time
async def test_once(control_plane: Cluster, namespace: str) -> None:
    async with looked_after(control_plane, namespace) as it:
        await it.make("Once")
        first = await it.runs()
        await it.end("Failed", first)
        await it.vm("Stopped")
        await it.ask({"action": "Stop", "uid": first})
        await asyncio.sleep(A_WHILE)
        assert await it.uid() == first


@real_time
async def test_a_receiver_waits(control_plane: Cluster, namespace: str) -> None:
    async with looked_after(control_plane, namespace, node=False) as it:
        await it.make("WaitAsReceiver")
        made = await eventually(it.uid)
        await it.vmi("WaitingForSync")
        found = await it.vm("WaitingForReceiver")
        assert found["status"]["created"]
        assert await it.pod() is None
        instance = await it.client.get(VIRTUAL_MACHINE_INSTANCES, it.name, namespace)
        assert instance["metadata"]["annotations"]["kubevirt.io/create-migration-target"] == "true"
        assert await it.uid() == made


@real_time
async def test_a_start_that_fails_is_not_tried_again_at_once(control_plane: Cluster, namespace: str) -> None:
    async with looked_after(control_plane, namespace, node=False) as it:
        await it.make("Always")
        first = await eventually(it.uid)
        pod = await eventually(it.pod)
        await it.vmi("Scheduling")
        await it.end("Failed", first)
        await it.client.delete(VIRTUAL_MACHINE_INSTANCES, it.name, namespace)
        found = await it.vm("CrashLoopBackOff")
        failure = found["status"]["startFailure"]
        assert (failure["consecutiveFailCount"], failure["lastFailedVMIUID"]) == (1, first)
        assert failure["retryAfterTimestamp"]
        await asyncio.sleep(A_WHILE)
        assert await it.uid() in ("", first)
        assert pod["metadata"]["ownerReferences"][0]["uid"] == first


@real_time
async def test_what_needs_a_restart_is_said_until_it_is_restarted(
    control_plane: Cluster, namespace: str
) -> None:
    async with looked_after(control_plane, namespace) as it:
        await it.make("Always")
        first = await it.runs()
        await it.change("/spec/template/spec/hostname", "other")
        await it.condition("RestartRequired", status="True")
        await it.ask({"action": "Stop", "uid": first}, {"action": "Start"})
        await it.anew(first)

        async def dropped() -> bool:
            found = await it.client.get(VIRTUAL_MACHINES, it.name, namespace)
            return "RestartRequired" not in {one["type"] for one in found["status"]["conditions"]}

        await eventually(dropped)
        made = await it.vmi("Running")
        assert made["spec"]["hostname"] == "other"


@real_time
async def test_pod_security_is_told_in_plain_words(control_plane: Cluster, namespace: str) -> None:
    async with looked_after(control_plane, namespace, node=False) as it:
        label = {"metadata": {"labels": {"pod-security.kubernetes.io/enforce": "restricted"}}}
        await it.client.patch(NAMESPACES, namespace, "", label, PatchType.MERGE)
        await it.make("Always")
        told = await it.condition("Synchronized", status="False", reason="FailedCreate")
        assert "the namespace must be privileged" in told["message"]
        assert "violates PodSecurity" in told["message"]
        await it.vm("Starting")
        label["metadata"]["labels"]["pod-security.kubernetes.io/enforce"] = "privileged"
        await it.client.patch(NAMESPACES, namespace, "", label, PatchType.MERGE)
        await eventually(it.pod)


@pytest.fixture
def data_volumes(control_plane: Cluster) -> Iterator[None]:
    """CDI's kind, without CDI."""
    with cdi_installed(control_plane):
        yield


@contextmanager
def cdi_installed(control_plane: Cluster) -> Iterator[None]:
    definition = kind_of("cdi.kubevirt.io", "v1beta1", "datavolumes", "DataVolume")
    control_plane.api.apply(definition, path_of(definition))
    try:
        await_served(control_plane, definition)
        yield
    finally:
        control_plane.request("DELETE", path_of(definition))
        # It goes by a finalizer; who makes it again meanwhile changes what is about to go.
        with suppress(ClusterError):
            while control_plane.request("GET", path_of(definition)):
                time.sleep(0.05)


@real_time
async def test_without_cdi_it_is_asked_for(control_plane: Cluster, namespace: str) -> None:
    async with looked_after(control_plane, namespace) as it:
        made = machine(namespace, it.name)
        made["spec"]["dataVolumeTemplates"] = [
            {"metadata": {"name": "dv"}, "spec": {"source": {"blank": {}}}}
        ]
        made["spec"]["template"]["spec"]["volumes"] = [{"name": "root", "dataVolume": {"name": "dv"}}]
        await it.client.create(VIRTUAL_MACHINES, made)
        told = await it.condition("Failure", status="True", reason="FailedCreate")
        assert "install CDI" in told["message"]


def test_cdi_may_come_later(control_plane: Cluster, namespace: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """What was refused before is made then, and its progress seen."""
    monkeypatch.setattr("kvnode.controller.manager.RECHECK", 0.5)

    @real_time
    async def run() -> None:
        async with looked_after(control_plane, namespace) as it:
            made = machine(namespace, it.name)
            made["spec"]["dataVolumeTemplates"] = [
                {"metadata": {"name": "dv"}, "spec": {"source": {"blank": {}}}}
            ]
            made["spec"]["template"]["spec"]["volumes"] = [{"name": "root", "dataVolume": {"name": "dv"}}]
            await it.client.create(VIRTUAL_MACHINES, made)
            await it.condition("Failure", status="True", reason="FailedCreate")
            with cdi_installed(control_plane):
                await eventually(lambda: it.client.get(DATA_VOLUMES, "dv", namespace))
                status = {"status": {"phase": "ImportInProgress"}}
                await it.client.patch(DATA_VOLUMES, "dv", namespace, status, PatchType.MERGE)
                await it.vm("Provisioning")

    run()


@real_time
async def test_a_data_volume_is_made_and_waited_for(
    control_plane: Cluster, namespace: str, data_volumes: None
) -> None:
    async with looked_after(control_plane, namespace) as it:
        made = machine(namespace, it.name)
        made["spec"]["dataVolumeTemplates"] = [
            {"metadata": {"name": "dv"}, "spec": {"source": {"blank": {}}}}
        ]
        made["spec"]["template"]["spec"]["volumes"] = [{"name": "root", "dataVolume": {"name": "dv"}}]
        vm = await it.client.create(VIRTUAL_MACHINES, made)
        dv = await eventually(lambda: it.client.get(DATA_VOLUMES, "dv", namespace))
        assert dv["metadata"]["ownerReferences"][0]["uid"] == vm["metadata"]["uid"]
        imported = {"status": {"phase": "ImportInProgress"}}
        await it.client.patch(DATA_VOLUMES, "dv", namespace, imported, PatchType.MERGE)
        await it.vm("Provisioning")
        assert not await it.uid()
        await it.client.patch(DATA_VOLUMES, "dv", namespace, {"status": {"phase": "Failed"}}, PatchType.MERGE)
        await it.vm("DataVolumeError")
        owner = {**dv["metadata"]["ownerReferences"][0], "kind": "DataVolume", "name": "dv"}
        owner |= {"uid": dv["metadata"]["uid"], "apiVersion": "cdi.kubevirt.io/v1beta1"}
        await it.client.create(PERSISTENT_VOLUME_CLAIMS, claim(namespace, "dv", ownerReferences=[owner]))
        await it.bind("dv")
        await it.client.patch(
            DATA_VOLUMES, "dv", namespace, {"status": {"phase": "Succeeded"}}, PatchType.MERGE
        )
        await it.runs()


def claim(namespace: str, name: str, **metadata: Any) -> Object:
    return {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": {"name": name, "namespace": namespace, **metadata},
        "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}},
    }


@real_time
async def test_a_claim_is_waited_for(control_plane: Cluster, namespace: str) -> None:
    async with looked_after(control_plane, namespace) as it:
        await it.make("Always", volumes=[{"name": "root", "persistentVolumeClaim": {"claimName": "root"}}])
        await it.vm("ErrorPvcNotFound")
        told = await it.condition("Synchronized", status="False", reason="FailedPvcNotFound")
        assert f"{namespace}/root" in told["message"]
        assert await it.pod() is None
        await it.client.create(PERSISTENT_VOLUME_CLAIMS, claim(namespace, "root"))
        await it.bind("root")
        await it.runs()
