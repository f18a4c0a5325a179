"""Scheduler, kubelet and node agent of many machines at once.

Pods run as soon as they are made, and so do guests; pods that are to go end at once.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Awaitable
from dataclasses import dataclass, field

from kvnode.api.names import APP_LABEL
from kvnode.kube.client import Client, PatchType
from kvnode.kube.errors import NotFound
from kvnode.kube.informer import Change, Informer, run_informers
from kvnode.kube.objects import Object, timestamp, utc_now
from kvnode.kube.resources import PODS, VIRTUAL_MACHINE_INSTANCES

NODE = "node01"
_CONDITIONS = ("Initialized", "Ready", "ContainersReady", "PodScheduled")


@dataclass
class StandIn:
    """It remembers by UID what it has seen, so that nothing that was made twice goes unnoticed."""

    client: Client
    namespace: str = ""
    pods: dict[str, str] = field(default_factory=dict)
    """UID of every launcher pod ever seen -> name of its VMI."""
    vmis: dict[str, str] = field(default_factory=dict)
    """UID of every VMI ever seen -> its name."""
    _ended: set[str] = field(default_factory=set)
    _running: set[str] = field(default_factory=set)
    _tasks: set[asyncio.Task[None]] = field(default_factory=set)

    async def run(self) -> None:
        """Play until cancelled."""
        pods = Informer(self.client, PODS, namespace=self.namespace, label_selector=APP_LABEL)
        vmis = Informer(self.client, VIRTUAL_MACHINE_INSTANCES, namespace=self.namespace)
        pods.add_handler(self._on_pod)
        vmis.add_handler(self._on_vmi)
        try:
            await run_informers(pods, vmis)
        finally:
            for task in self._tasks:
                task.cancel()

    def twice(self) -> list[str]:
        """VMIs that were made more than once, or have had more than one pod."""
        counts = (Counter(self.pods.values()), Counter(self.vmis.values()))
        return sorted({name for count in counts for name, times in count.items() if times > 1})

    def _on_pod(self, change: Change) -> None:
        pod = change.object
        meta = pod["metadata"]
        if change.deleted:
            return
        if meta.get("deletionTimestamp") and meta["uid"] not in self._ended:
            self._ended.add(meta["uid"])
            self._start(self._end_pod(pod))
        if meta["uid"] in self.pods:
            return
        self.pods[meta["uid"]] = meta["ownerReferences"][0]["name"]
        self._start(self._run_pod(pod, len(self.pods)))

    def _on_vmi(self, change: Change) -> None:
        vmi = change.object
        uid = vmi["metadata"]["uid"]
        if change.deleted:
            return
        self.vmis[uid] = vmi["metadata"]["name"]
        if (vmi.get("status") or {}).get("phase") == "Scheduled" and uid not in self._running:
            self._running.add(uid)
            self._start(self._run_guest(vmi))

    def _start(self, work: Awaitable[None]) -> None:
        task = asyncio.ensure_future(work)
        self._tasks.add(task)
        task.add_done_callback(self._done)

    def _done(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        if not task.cancelled() and (error := task.exception()) and not isinstance(error, NotFound):
            raise error

    async def _run_pod(self, pod: Object, number: int) -> None:
        name, namespace = pod["metadata"]["name"], pod["metadata"]["namespace"]
        target = {"apiVersion": "v1", "kind": "Node", "name": NODE}
        binding = {"metadata": {"name": name, "namespace": namespace}, "target": target}
        await self.client.create(PODS, binding, subresource="binding")
        address = f"10.244.{number >> 8 & 255}.{number & 255}"
        running = {"state": {"running": {}}, "ready": True, "started": True, "restartCount": 0}
        status = {
            "phase": "Running",
            "podIP": address,
            "podIPs": [{"ip": address}],
            "conditions": [{"type": kind, "status": "True"} for kind in _CONDITIONS],
            "containerStatuses": [
                {"name": one["name"], "image": one["image"], "imageID": "x", **running}
                for one in pod["spec"]["containers"]
            ],
        }
        patch = {"status": status}
        await self.client.patch(PODS, name, namespace, patch, PatchType.STRATEGIC, subresource="status")

    async def _end_pod(self, pod: Object) -> None:
        meta = pod["metadata"]
        await self.client.delete(PODS, meta["name"], meta["namespace"], uid=meta["uid"], grace_seconds=0)

    async def _run_guest(self, vmi: Object) -> None:
        seen = {"phase": "Running", "phaseTransitionTimestamp": timestamp(utc_now())}
        patch: list[Object] = [
            {"op": "replace", "path": "/status/phase", "value": "Running"},
            {"op": "add", "path": "/status/phaseTransitionTimestamps/-", "value": seen},
        ]
        name, namespace = vmi["metadata"]["name"], vmi["metadata"]["namespace"]
        await self.client.patch(VIRTUAL_MACHINE_INSTANCES, name, namespace, patch)
