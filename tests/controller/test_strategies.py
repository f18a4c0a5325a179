"""What becomes of machines by their run strategies, on a real API server; nodes are played by the test."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

import pytest

from kvnode.controller.manager import Manager
from kvnode.kube.client import Client, PatchType
from kvnode.kube.errors import NotFound
from kvnode.kube.objects import Object
from kvnode.kube.resources import (
    NAMESPACES,
    PERSISTENT_VOLUME_CLAIMS,
    VIRTUAL_MACHINE_INSTANCES,
    VIRTUAL_MACHINES,
)
from tests.cluster.cluster import Cluster
from tests.controller.standin import StandIn
from tests.controller.test_manager import Played, eventually, machine
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

    async def make_on_data_volume(self, name: str) -> Object:
        """Make one whose disk is a DataVolume of its own."""
        made = machine(self.namespace, self.name)
        source: Object = {"source": {"blank": {}}}
        made["spec"]["dataVolumeTemplates"] = [{"metadata": {"name": name}, "spec": source}]
        made["spec"]["template"]["spec"]["volumes"] = [{"name": "root", "dataVolume": {"name": name}}]
        return await self.client.create(VIRTUAL_MACHINES, made)

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
async def test_a_start_that_failed_is_tried_again_when_it_is_due(
    control_plane: Cluster, namespace: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("kvnode.controller.vm.backoff.MAXIMUM_DELAY", 2)
    async with looked_after(control_plane, namespace, node=False) as it:
        await it.make("RerunOnFailure")
        first = await eventually(it.uid)
        await it.vmi("Scheduling")
        await it.end("Failed", first)

        async def anew() -> bool:
            return await it.uid() not in ("", first)

        await eventually(anew)
        again = await it.vmi("Scheduling")
        found = await it.client.get(VIRTUAL_MACHINES, it.name, namespace)
        failure = found["status"]["startFailure"]
        assert failure["lastFailedVMIUID"] == first
        assert again["metadata"]["creationTimestamp"] >= failure["retryAfterTimestamp"]
        await it.start_pod()
        await it.vmi("Scheduled")
        await it.become("Running")

        async def forgotten() -> bool:
            found = await it.client.get(VIRTUAL_MACHINES, it.name, namespace)
            return "startFailure" not in found["status"]

        await eventually(forgotten)


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
