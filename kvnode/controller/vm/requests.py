"""Requests to start or stop, which the VM's status keeps in a list. Only the first one counts."""

from __future__ import annotations

from typing import Any

from kvnode.controller.instance import is_final
from kvnode.controller.meta import at, put, status_of
from kvnode.kube.objects import Object, is_deleting, uid_of

START = "Start"
STOP = "Stop"


def first_request(vm: Object) -> dict[str, Any]:
    """The request to be looked at, an empty mapping when there is none."""
    requests = at(vm, "status", "stateChangeRequests") or [{}]
    return requests[0] or {}


def wants_start(vm: Object) -> bool:
    """Whether a start is asked for."""
    return bool(first_request(vm).get("action") == START)


def wants_paused_start(vm: Object) -> bool:
    """Whether the guest is to be started and not to run (``types.go:2825``)."""
    return wants_start(vm) and at(first_request(vm), "data", "paused") == "true"


def wants_stop_of(vm: Object, vmi: Object) -> bool:
    """Whether a stop of this very VMI is asked for."""
    request = first_request(vm)
    return request.get("action") == STOP and request.get("uid") is not None and request["uid"] == uid_of(vmi)


def will_start(vm: Object) -> bool:
    """Whether a start is asked for, if not before something else."""
    return any((one or {}).get("action") == START for one in at(vm, "status", "stateChangeRequests") or ())


def append_start(vm: Object) -> None:
    """Ask for a start, in memory, after what is asked for already."""
    status = status_of(vm)
    status["stateChangeRequests"] = [*(status.get("stateChangeRequests") or ()), {"action": START}]


def drop_served_request(vm: Object, vmi: Object | None) -> None:
    """Take the first request away when it was served or can never be (``vm.go:2811``)."""
    if _is_served(first_request(vm), vmi):
        status = status_of(vm)
        put(status, "stateChangeRequests", status["stateChangeRequests"][1:])


def _is_served(request: dict[str, Any], vmi: Object | None) -> bool:
    if request.get("action") == STOP:
        return vmi is None or request.get("uid") is None or request["uid"] != uid_of(vmi)
    if request.get("action") == START:
        return vmi is not None and not is_deleting(vmi) and not is_final(vmi)
    return False
