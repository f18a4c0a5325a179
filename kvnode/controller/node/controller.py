"""Nodes whose agent gives no sign of life (``pkg/virt-controller/watch/node/node.go``)."""

from __future__ import annotations

import asyncio
import logging
from datetime import UTC, datetime, timedelta

from kvnode.controller import names
from kvnode.controller.indices import CONTROLLER, NODE
from kvnode.controller.meta import annotations_of, at, labels_of, name_of, namespace_of
from kvnode.controller.ports import NORMAL, World
from kvnode.controller.vmi.pods import FAILED, SUCCEEDED, is_down, node_of
from kvnode.kube.client import PatchType
from kvnode.kube.errors import ApiError, NotFound
from kvnode.kube.objects import Object, uid_of
from kvnode.kube.resources import NODES, VIRTUAL_MACHINE_INSTANCES

HEARTBEAT_ANNOTATION = "kubevirt.io/heartbeat"
SCHEDULABLE_LABEL = "kubevirt.io/schedulable"
TIMEOUT = timedelta(minutes=5)
"""Without a sign of life for so long, the agent of a node is taken for dead."""

RECHECK = 60.0
"""Seconds between two looks at a node."""

logger = logging.getLogger(__name__)


class NodeController:
    """Keeps new VMIs from a node whose agent is silent, and ends those on it that have no pod left.

    A VMI whose pod may still run there is left alone: its guest could be alive, and a second one would write to
    the same disks. It ends when the cluster takes the pod away.
    """

    def __init__(self, world: World) -> None:
        self.world = world

    async def reconcile(self, key: str) -> None:
        """Look at the node of that name.

        Raises:
            ApiError: the server refused a write.
        """
        node = self.world.caches.nodes.get(key)
        if is_silent(node, self.world.clock()):
            if node is not None and labels_of(node).get(SCHEDULABLE_LABEL) == "true":
                await self._keep_new_ones_away(node)
            await self._give_up_lost(key)
        if node is not None:
            self.world.queue.add_after(key, RECHECK)

    async def _give_up_lost(self, node: str) -> None:
        """End those without a pod. One that cannot be written keeps no other back.

        Raises:
            ApiError: the server refused one.
        """
        refused: ApiError | None = None
        for one in self.world.caches.vmis.keys_by(NODE, node):
            await asyncio.sleep(0)  # they may be many, and others have work to do
            vmi = self.world.caches.vmis.get(one)
            if vmi is None or not self._is_lost(vmi, node):
                continue
            try:
                await self._give_up(vmi, node)
            except ApiError as error:
                logger.warning("%s has no pod on %s, and cannot be written: %s", one, node, error)
                refused = error
        if refused is not None:
            raise refused

    async def _keep_new_ones_away(self, node: Object) -> None:
        message = "The node's agent gives no sign of life: no more VMIs are scheduled to the node"
        self.world.recorder.record(node, NORMAL, names.NODE_UNRESPONSIVE, message)
        patch = {"metadata": {"labels": {SCHEDULABLE_LABEL: "false"}}}
        await self.world.api.patch(NODES, name_of(node), "", patch, PatchType.STRATEGIC)

    def _is_lost(self, vmi: Object, node: str) -> bool:
        if at(vmi, "status", "nodeName") != node or at(vmi, "status", "phase") in (SUCCEEDED, FAILED):
            return False
        pods = self.world.caches.pods.by(CONTROLLER, uid_of(vmi))
        return not any(node_of(pod) == node and is_alive(pod) for pod in pods)

    async def _give_up(self, vmi: Object, node: str) -> None:
        message = (
            f"The agent of node {node} gives no sign of life and the VMI has no pod there: it has failed"
        )
        self.world.recorder.record(vmi, NORMAL, names.NODE_UNRESPONSIVE, message)
        patch = [
            {"op": "test", "path": "/status/phase", "value": at(vmi, "status", "phase")},
            {"op": "replace", "path": "/status/phase", "value": FAILED},
            {"op": "add", "path": "/status/reason", "value": names.NODE_UNRESPONSIVE},
        ]
        try:
            await self.world.api.patch(VIRTUAL_MACHINE_INSTANCES, name_of(vmi), namespace_of(vmi), patch)
        except NotFound:
            logger.debug("%s is gone already", name_of(vmi))


def is_silent(node: Object | None, now: datetime) -> bool:
    """Whether the node is gone, or its agent's last sign of life is too old.

    A node without one has no agent yet; what cannot be read says nothing.
    """
    if node is None:
        return True
    text = annotations_of(node).get(HEARTBEAT_ANNOTATION)
    if text is None:
        return False
    try:
        last = datetime.fromisoformat(text)
    except ValueError:
        logger.warning("node %s: %s is no time: %.40r", name_of(node), HEARTBEAT_ANNOTATION, text)
        return False
    return (last if last.tzinfo else last.replace(tzinfo=UTC)) < now - TIMEOUT


def is_alive(pod: Object) -> bool:
    """Whether something of the pod may still run. One that cannot end without the agent may have ended for all that."""
    statuses = at(pod, "status", "containerStatuses") or ()
    ended = bool(statuses) and all(at(one, "state", "terminated") is not None for one in statuses)
    return not ended and not is_down(pod)
