"""What a launcher pod's status says (``ctl.go:323-359,492-557``)."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from kvnode.controller.meta import annotations_of, at
from kvnode.controller.names import TEMPORARY_POD_ANNOTATION
from kvnode.kube.objects import Object, is_deleting, metadata

COMPUTE = "compute"
_STARTED_IS_ENOUGH = (COMPUTE, "istio-proxy")
"""Containers whose readiness waits for the guest, or for a service that does."""

RUNNING = "Running"
SUCCEEDED = "Succeeded"
FAILED = "Failed"


def current_pod(pods: Iterable[Object], node: str) -> Object | None:
    """The newest of a VMI's pods; of those on its node, if it has one."""
    current: Object | None = None
    for pod in pods:
        if node and at(pod, "spec", "nodeName") != node:
            continue
        if current is None or _created(current) < _created(pod):
            current = pod
    return current


def _created(pod: Object) -> str:
    return str(metadata(pod).get("creationTimestamp") or "")


def phase_of(pod: Object) -> str:
    """The pod's phase."""
    return str(at(pod, "status", "phase") or "")


def node_of(pod: Object) -> str:
    """The node that it was given to, "" before."""
    return str(at(pod, "spec", "nodeName") or "")


def is_down(pod: Object) -> bool:
    """Whether it has ended."""
    return phase_of(pod) in (SUCCEEDED, FAILED)


def is_going_down(pod: Object) -> bool:
    """Whether it has ended, is ending, or runs without its VM."""
    return is_down(pod) or _ended(pod) is not None or is_deleting(pod)


def is_failing(pod: Object) -> bool:
    """Whether it has failed, is failing, or is being deleted."""
    ended = _ended(pod)
    return phase_of(pod) == FAILED or bool(ended and ended.get("exitCode")) or is_deleting(pod)


def _ended(pod: Object) -> dict[str, Any] | None:
    statuses = at(pod, "status", "containerStatuses") or ()
    compute = next((one for one in statuses if one.get("name") == COMPUTE), None)
    found: dict[str, Any] | None = at(compute, "state", "terminated")
    return found


def is_ready(pod: Object) -> bool:
    """Whether a node may start the VM in it. Its readiness gate waits for the guest, and does not count."""
    if is_going_down(pod):
        return False
    for status in at(pod, "status", "containerStatuses") or ():
        if status.get("name") in _STARTED_IS_ENOUGH:
            if at(status, "state", "running") is None:
                return False
        elif not status.get("ready"):
            return False
    return phase_of(pod) == RUNNING


def is_temporary(pod: Object) -> bool:
    """Whether it only binds claims, and runs no VM."""
    return TEMPORARY_POD_ANNOTATION in annotations_of(pod)


def launcher_image(pod: Object) -> str:
    """Image of the container that the VM runs in."""
    containers = at(pod, "spec", "containers") or ()
    return next((str(one.get("image", "")) for one in containers if one.get("name") == COMPUTE), "")


def image_trouble(pod: Object, reasons: Iterable[str]) -> tuple[str, str] | None:
    """Reason and message of the first container that waits for one of the reasons."""
    statuses = (at(pod, "status", kind) or () for kind in ("initContainerStatuses", "containerStatuses"))
    for status in (one for kind in statuses for one in kind):
        waiting = at(status, "state", "waiting")
        if waiting is not None and waiting.get("reason") in reasons:
            return waiting["reason"], str(
                waiting.get("message") or "the image of a container cannot be pulled"
            )
    return None
