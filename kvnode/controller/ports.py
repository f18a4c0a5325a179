"""What the controllers need of the world, as protocols."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Protocol

from kvnode.kube.client import PatchType
from kvnode.kube.objects import Object, utc_now
from kvnode.kube.resources import Resource
from kvnode.spec.config import ClusterConfig
from kvnode.spec.pod import LauncherSettings

NORMAL = "Normal"
WARNING = "Warning"

Clock = Callable[[], datetime]
"""The time of day."""


class Api(Protocol):
    """Calls to the API server; each raises `kvnode.kube.errors.ApiError` when it is refused."""

    async def get(self, resource: Resource, name: str, namespace: str = "") -> Object:
        """The object as it is now."""

    async def create(self, resource: Resource, obj: Object) -> Object:
        """Create the object."""

    async def replace(self, resource: Resource, obj: Object, *, subresource: str = "") -> Object:
        """Write the whole object, or its status alone."""

    async def patch(
        self,
        resource: Resource,
        name: str,
        namespace: str,
        patch: Object | list[Object],
        kind: PatchType = PatchType.JSON,
        *,
        subresource: str = "",
    ) -> Object:
        """Change parts of the object."""

    async def delete(
        self, resource: Resource, name: str, namespace: str = "", *, grace_seconds: int | None = None
    ) -> Any:
        """Delete the object."""


class TrackingApi(Api, Protocol):
    """An `Api` that knows what was written by it (`kvnode.controller.freshness.FreshApi`)."""

    def is_stale(self, resource: Resource, obj: Object) -> bool:
        """Whether an object of a cache is older than what was written."""

    async def settled(self, resource: Resource, key: str) -> None:
        """Wait until no write of the object of that key is under way."""

    def forget(self, resource: Resource, key: str) -> None:
        """The object is gone."""


class Store(Protocol):
    """What is known of a collection; whatever it gives is a copy."""

    def get(self, key: str) -> Object | None:
        """The object of that key (``namespace/name``)."""

    def keys_by(self, index: str, value: str) -> list[str]:
        """The keys of those objects, in order."""

    def by(self, index: str, value: str) -> list[Object]:
        """The objects that an index has under a value, in the order of their keys."""

    def objects(self) -> Iterator[Object]:
        """All objects."""


class Recorder(Protocol):
    """Tells users what happened."""

    def record(self, obj: Object, kind: str, reason: str, message: str) -> None:
        """Record an event about an object; `kind` is Normal or Warning."""


class Queue(Protocol):
    """The queue of the controller's own keys."""

    def add_after(self, key: str, delay: float) -> None:
        """Look at the key again after so many seconds."""


@dataclass(frozen=True, slots=True)
class Caches:
    """What the watches know, each with the indices of `kvnode.controller.indices`."""

    vms: Store
    vmis: Store
    pods: Store
    revisions: Store
    claims: Store
    data_volumes: Store
    migrations: Store
    storage_classes: Store
    nodes: Store
    quotas: Store
    namespaces: Store


@dataclass(frozen=True, slots=True)
class Settings:
    """The cluster's configuration and this installation's habits."""

    config: ClusterConfig = field(default_factory=ClusterConfig)
    launcher: LauncherSettings = field(default_factory=lambda: LauncherSettings(network_annotations=True))
    architecture: str = "amd64"
    """Of a VM that names none."""

    state_storage_class: str = ""
    """``spec.configuration.vmStateStorageClass``: for the claims that keep a VM's own state."""

    cpu_limit_namespaces: Mapping[str, Any] | None = None
    """``spec.configuration.autoCPULimitNamespaceLabelSelector``: where pods' CPUs are limited."""

    annotations_sync: tuple[str, ...] = ()
    """More annotations kept the same on VM, VMI and pod; one that ends in ``*`` is a prefix."""

    labels_sync: tuple[str, ...] = ()

    rerun_evicted: bool = False
    """Whether a guest that shut down well as its pod was deleted has failed, under RerunOnFailure."""


@dataclass(frozen=True, slots=True)
class World:
    """All of it together."""

    api: TrackingApi
    caches: Caches
    recorder: Recorder
    queue: Queue
    settings: Callable[[], Settings] = Settings
    """The settings as they are now."""

    clock: Clock = utc_now
