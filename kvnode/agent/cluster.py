"""The API server, as the decisions about VMIs see it."""

from __future__ import annotations

import asyncio
import logging
from collections import deque

from kvnode.agent.observe.events import Event
from kvnode.agent.parts import Expectations
from kvnode.agent.status.write import status_patch
from kvnode.agent.vmi import Vmi, key_of, metadata
from kvnode.api.names import (
    APP_LABEL,
    CREATED_BY_LABEL,
    LAUNCHER_APP,
    MIGRATION_TARGET_NODE_LABEL,
    NODE_NAME_LABEL,
)
from kvnode.kube.client import Client, PatchType
from kvnode.kube.errors import NotFound
from kvnode.kube.events import LONGEST_MESSAGE, EventRecorder
from kvnode.kube.informer import Informer
from kvnode.kube.objects import Object, is_deleting, split_key, timestamp, uid_of, utc_now
from kvnode.kube.resources import KUBEVIRTS, PODS, VIRTUAL_MACHINE_INSTANCES

logger = logging.getLogger(__name__)

_FINISHED = ("Succeeded", "Failed")
_BY_UID = "uid"

SHOWN = 20
"""Events that are kept for whoever looks."""


class ApiServer:
    """Live reads and writes."""

    def __init__(self, client: Client, expectations: Expectations) -> None:
        """`expectations` are those of the passes that write."""
        self._client = client
        self._expectations = expectations

    async def read(self, key: str) -> Vmi | None:
        """A VMI as it is now; None when the API server says that there is none.

        A 404 that does not name the VMI says something else, such as that a server that just started, or a proxy
        before it, does not know VMIs at all: that must not cost a guest its life.
        """
        namespace, name = split_key(key)
        try:
            return await self._client.get(VIRTUAL_MACHINE_INSTANCES, name, namespace)
        except NotFound as error:
            if error.details.get("name") != name:
                raise
            return None

    async def write_status(self, old: Vmi, new: Vmi) -> None:
        """Write the status of ``new`` over that of ``old``, unless the object has changed since."""
        namespace, name = split_key(key_of(new))
        patch = status_patch(old, new)
        answer = await self._client.patch(VIRTUAL_MACHINE_INSTANCES, name, namespace, patch, PatchType.MERGE)
        if metadata(answer).get("resourceVersion") == metadata(old).get("resourceVersion"):
            # The server found nothing to change, and its watch has nothing to show.
            self._expectations.clear(key_of(new))


class VmiRecorder:
    """Events about VMIs."""

    def __init__(self, recorder: EventRecorder) -> None:
        """`recorder` writes them."""
        self._recorder = recorder
        self.last: deque[Event] = deque(maxlen=SHOWN)
        """The last ones, newest first."""

    def event(self, vmi: Vmi, kind: str, reason: str, message: str) -> None:
        """Record an Event about the VMI; never fails and never waits."""
        message = message[:LONGEST_MESSAGE]
        logger.info("%s: %s %s: %s", key_of(vmi), kind, reason, message)
        told = Event(timestamp(utc_now()), key_of(vmi), kind, reason, message)
        if self.last and self.last[0].says_the_same(told):
            self.last.popleft()
        self.last.appendleft(told)
        self._recorder.record(vmi, kind, reason, message)


class LauncherPods:
    """What the watch over this node's launcher pods tells."""

    def __init__(self, informer: Informer) -> None:
        """`informer` is one that `launcher_pods` made."""
        self._store = informer.store

    def is_leaving(self, uid: str) -> bool:
        """Whether the pod was told to go, has ended, or is not there any more."""
        found = self._store.by(_BY_UID, uid)
        return all(is_deleting(pod) or (pod.get("status") or {}).get("phase") in _FINISHED for pod in found)

    def owner(self, uid: str) -> str:
        """UID of the VMI that the pod is of, by its owner or else its label; "" when nothing says so."""
        for pod in self._store.by(_BY_UID, uid):
            about = metadata(pod)
            for one in about.get("ownerReferences") or ():
                if one.get("controller"):
                    return str(one.get("uid") or "")
            return str((about.get("labels") or {}).get(CREATED_BY_LABEL) or "")
        return ""


def instances(client: Client, node: str) -> Informer:
    """The watch over VMIs of the node."""
    return Informer(client, VIRTUAL_MACHINE_INSTANCES, label_selector=f"{NODE_NAME_LABEL}={node}")


def arriving_instances(client: Client, node: str) -> Informer:
    """The watch over VMIs that are to come to the node from another."""
    selector = f"{MIGRATION_TARGET_NODE_LABEL}={node}"
    return Informer(client, VIRTUAL_MACHINE_INSTANCES, label_selector=selector)


def launcher_pods(client: Client, node: str) -> Informer:
    """The watch over the node's launcher pods."""
    return Informer(
        client,
        PODS,
        label_selector=f"{APP_LABEL}={LAUNCHER_APP}",
        field_selector=f"spec.nodeName={node}",
        indexers={_BY_UID: lambda pod: (uid_of(pod),)},
    )


def configurations(client: Client) -> Informer:
    """The watch over the KubeVirt object."""
    return Informer(client, KUBEVIRTS)


def configuration_of(kubevirt: Object) -> Object:
    """``spec.configuration`` of a KubeVirt object, empty where there is none."""
    spec = kubevirt.get("spec")
    found = spec.get("configuration") if isinstance(spec, dict) else None
    return found if isinstance(found, dict) else {}


def troubles(*informers: Informer) -> dict[str, str]:
    """Of each watch that has no first list, or is broken now: its collection, and what is wrong."""
    found = {}
    for informer in informers:
        reflector = informer.reflector
        if reflector.failure is not None or not reflector.synced.is_set():
            found[str(informer.resource)] = f"cannot be followed: {reflector.failure or 'no answer yet'}"
    return found


async def until_synced(seconds: float, *informers: Informer) -> None:
    """Wait for first lists, telling every now and then which are missing."""
    for informer in informers:
        while not informer.reflector.synced.is_set():
            try:
                async with asyncio.timeout(seconds):
                    await informer.wait_synced()
            except TimeoutError:
                reason = informer.reflector.failure or "no answer yet"
                logger.warning("%s: cannot be listed: %s", informer.resource, reason)
