"""How far the status of VMs trails what became of their VMIs."""

from __future__ import annotations

import time
from typing import Any

from kvnode.kube.client import Client
from kvnode.kube.informer import Change, Informer, run_informers
from kvnode.kube.objects import Object
from kvnode.kube.resources import VIRTUAL_MACHINE_INSTANCES, VIRTUAL_MACHINES

Told = tuple[bool, bool, bool]
"""Whether the VMI is there, is Running, is Ready."""
NOTHING: Told = (False, False, False)
READY: Told = (True, True, True)


class Watcher:
    """Watches VMs and VMIs, and remembers the longest time for which a VM told something else than its VMI."""

    def __init__(self, client: Client, namespace: str) -> None:
        self._client = client
        self._namespace = namespace
        self._truth: dict[str, Told] = {}
        self._told: dict[str, Told] = {}
        self._since: dict[str, float] = {}
        self.longest = 0.0
        """Seconds."""
        self.made: dict[str, tuple[str, float]] = {}
        """UID of the VMI that is there by ``namespace/name``, and when that was seen by the clock."""

    async def run(self) -> None:
        """Watch until cancelled."""
        vms = Informer(self._client, VIRTUAL_MACHINES, namespace=self._namespace)
        vmis = Informer(self._client, VIRTUAL_MACHINE_INSTANCES, namespace=self._namespace)
        vms.add_handler(self._on_vm)
        vmis.add_handler(self._on_vmi)
        await run_informers(vms, vmis)

    @property
    def ready(self) -> int:
        """How many VMs say that they are Running and Ready."""
        return sum(1 for told in self._told.values() if told == READY)

    def _on_vm(self, change: Change) -> None:
        status = change.object.get("status") or {}
        words = (status.get("created"), status.get("printableStatus") == "Running", status.get("ready"))
        self._told[change.key] = (
            NOTHING if change.deleted else (bool(words[0]), bool(words[1]), bool(words[2]))
        )
        self._compare(change.key)

    def _on_vmi(self, change: Change) -> None:
        status, uid = change.object.get("status") or {}, change.object["metadata"]["uid"]
        if self.made.get(change.key, ("", 0.0))[0] != uid:
            self.made[change.key] = (uid, time.time())
        running = status.get("phase") == "Running"
        self._truth[change.key] = NOTHING if change.deleted else (True, running, _is_ready(status))
        self._compare(change.key)

    def _compare(self, key: str) -> None:
        if self._told.get(key, NOTHING) != self._truth.get(key, NOTHING):
            self._since.setdefault(key, time.monotonic())
        elif key in self._since:
            self.longest = max(self.longest, time.monotonic() - self._since.pop(key))


def _is_ready(status: Object) -> bool:
    conditions: list[dict[str, Any]] = status.get("conditions") or []
    return any(one["type"] == "Ready" and one["status"] == "True" for one in conditions)
