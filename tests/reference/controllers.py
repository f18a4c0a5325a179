"""Runs one pass of a controller over a case's state, and tells what it did as the cases tell it."""

from __future__ import annotations

import asyncio
import copy
import re
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

from kvnode.controller import indices
from kvnode.controller.equality import bare
from kvnode.controller.freshness import FreshApi
from kvnode.controller.ports import Caches, Settings, World
from kvnode.kube import resources
from kvnode.kube.objects import Object, timestamp
from kvnode.kube.resources import Resource
from kvnode.kube.store import Store, entry_of
from kvnode.spec.config import ClusterConfig
from kvnode.spec.pod import LauncherSettings
from tests.reference.apiserver import RecordingServer

NOW = datetime(2031, 3, 7, 11, 43, 17, tzinfo=UTC)
LAUNCHER_IMAGE = "example.test/virt-launcher:1"
ORDINARY_FIELDS = ("guestOSInfo", "runtimeUser")
"""Of a VMI's status: written by the reference into each, whatever they say."""

_PLACE = re.compile(r"<now(?:([+-])(\d+)s)?>")
_STAMP = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ")

STORAGE_CLASSES = Resource("storage.k8s.io", "v1", "storageclasses", "StorageClass", namespaced=False)
MIGRATIONS = Resource(
    "kubevirt.io", "v1", "virtualmachineinstancemigrations", "VirtualMachineInstanceMigration"
)


def with_times(value: Any) -> Any:
    """A case's value with moments in the place of words for them."""
    if isinstance(value, dict):
        return {key: with_times(item) for key, item in value.items()}
    if isinstance(value, list):
        return [with_times(item) for item in value]
    if isinstance(value, str) and (found := _PLACE.fullmatch(value)):
        seconds = int(f"{found[1] or ''}{found[2] or 0}")
        return timestamp(NOW + timedelta(seconds=seconds))
    return value


def _words_for_times(value: Any) -> dict[str, str]:
    """The moments that a case's words stand for, with those words."""
    found: dict[str, str] = {}
    if isinstance(value, dict):
        for item in value.values():
            found |= _words_for_times(item)
    elif isinstance(value, list):
        for item in value:
            found |= _words_for_times(item)
    elif isinstance(value, str) and _PLACE.fullmatch(value):
        found[with_times(value)] = value
    return found


@dataclass
class Events:
    """Records events."""

    seen: list[dict[str, str]] = field(default_factory=list)

    def record(self, obj: Object, kind: str, reason: str, message: str) -> None:
        """Record one."""
        assert message
        assert message == message.strip()
        name = obj["metadata"]["name"]
        self.seen.append(
            {"event": f"{kind} {reason}", "object": f"{obj['kind']}/{name}", "reason": reason, "type": kind}
        )


@dataclass
class Delays:
    """Records delayed keys."""

    seen: list[tuple[str, float]] = field(default_factory=list)

    def add_after(self, key: str, delay: float) -> None:
        """Record one."""
        self.seen.append((key, delay))


class Scene:
    """The state of a case: a server, caches that show what it had at first, and a world around them."""

    def __init__(self, given: dict[str, Any]) -> None:
        """`given` is a case's input."""
        self.words = _words_for_times(given)
        state = with_times(given)
        self.server = RecordingServer(state.get("injectedErrors") or [], timestamp(NOW))
        self.events, self.delays = Events(), Delays()
        self.stores = {
            "virtualmachineinstances": Store(indices.INSTANCES),
            "pods": Store(indices.PODS),
            "controllerrevisions": Store(indices.REVISIONS),
            "persistentvolumeclaims": Store(indices.CLAIMS),
            "virtualmachineinstancemigrations": Store(indices.MIGRATIONS),
            "resourcequotas": Store(indices.QUOTAS),
        }
        for name in ("virtualmachines", "datavolumes", "storageclasses", "nodes", "namespaces"):
            self.stores[name] = Store()
        for resource, name in (
            (resources.PODS, "pods"),
            (resources.PERSISTENT_VOLUME_CLAIMS, "persistentVolumeClaims"),
            (resources.DATA_VOLUMES, "dataVolumes"),
            (STORAGE_CLASSES, "storageClasses"),
            (MIGRATIONS, "migrations"),
            (resources.RESOURCE_QUOTAS, "resourceQuotas"),
            (resources.NAMESPACES, "namespaces"),
        ):
            for obj in state.get(name) or ():
                self.add(resource, obj)
        config = state.get("clusterConfig")
        settings = Settings(
            config=ClusterConfig.from_mapping(config),
            launcher=LauncherSettings(launcher_image=LAUNCHER_IMAGE, network_annotations=True),
            state_storage_class=(config or {}).get("vmStateStorageClass", ""),
            cpu_limit_namespaces=(config or {}).get("autoCPULimitNamespaceLabelSelector"),
        )
        self.world = World(
            api=FreshApi(self.server),
            caches=Caches(
                vms=self.stores["virtualmachines"],
                vmis=self.stores["virtualmachineinstances"],
                pods=self.stores["pods"],
                revisions=self.stores["controllerrevisions"],
                claims=self.stores["persistentvolumeclaims"],
                data_volumes=self.stores["datavolumes"],
                migrations=self.stores["virtualmachineinstancemigrations"],
                storage_classes=self.stores["storageclasses"],
                nodes=self.stores["nodes"],
                quotas=self.stores["resourcequotas"],
                namespaces=self.stores["namespaces"],
            ),
            recorder=self.events,
            queue=self.delays,
            settings=lambda: settings,
            clock=lambda: NOW,
        )

    def add(self, resource: Resource, obj: Object, *, on_server: bool = True) -> None:
        """Have an object in the cache, and on the server."""
        self.stores[resource.plural].put(entry_of(obj), obj)
        if on_server:
            self.server.put(resource, obj)

    def show(self) -> None:
        """Let the caches show what the server has."""
        for name, store in self.stores.items():
            for key in store:
                store.remove(key)
            for (plural, _), obj in self.server.objects.items():
                if plural == name:
                    store.put(entry_of(obj), obj)

    def queue(self, reconcile: Any, key: str) -> dict[str, Any]:
        """Let the controller look at the key; the answer is what becomes of it in the queue."""
        operations: list[dict[str, Any]] = []
        try:
            asyncio.run(reconcile(key))
            end, result = "forget", "forgotten"
        except AssertionError:
            raise
        except Exception as error:
            if not str(error) or isinstance(error, (TypeError, AttributeError, LookupError)):
                raise
            end, result = "addRateLimited", "rateLimited"
        told: dict[str, Any] = {}
        for name, delay in self.delays.seen:
            operations.append({"delaySeconds": int(delay), "key": name, "op": "addAfter"})
            told["addedAfterSeconds"] = int(delay)
        operations.append({"key": key, "op": end})
        return {**told, "ops": operations, "result": result}

    def told(self, value: Any) -> Any:
        """A value as the cases tell it: without messages and nothings, with words for moments."""
        return self._worded(bare(plain(value)))

    def _worded(self, value: Any) -> Any:
        if isinstance(value, dict):
            return {key: self._worded(item) for key, item in value.items()}
        if isinstance(value, list):
            return [self._worded(item) for item in value]
        if isinstance(value, str) and _STAMP.fullmatch(value):
            return self.words.get(value, "<time>")
        return value


def plain(value: Any) -> Any:
    """A copy without messages, and without what every VMI's status has."""
    if isinstance(value, dict):
        kept = {key: plain(item) for key, item in value.items() if key != "message"}
        if value.get("runtimeUser") == 0 or value.get("guestOSInfo") == {}:
            for name in ORDINARY_FIELDS:
                if not kept.get(name):
                    kept.pop(name, None)
        return kept
    if isinstance(value, list):
        return [plain(item) for item in value]
    return copy.copy(value)


def call_told(call: dict[str, Any], payload: Any) -> dict[str, Any]:
    """A call as the cases tell it, with that payload."""
    return {**call, "payload": payload}
