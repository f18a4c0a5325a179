"""Whether the reference's result, taken further by our code, comes to what our code comes to by itself."""

from __future__ import annotations

import copy
from typing import Any

from kvnode.controller.vm import VirtualMachineController
from kvnode.kube import resources
from kvnode.kube.objects import Object
from kvnode.kube.resources import Resource
from tests.reference.apiserver import RANDOM, apply_patch
from tests.reference.controllers import NOW, timestamp, with_times
from tests.reference.vmcases import VMScene, expanded

PASSES = 8
_RESOURCES = {
    one.plural: one
    for one in (
        resources.VIRTUAL_MACHINES,
        resources.VIRTUAL_MACHINE_INSTANCES,
        resources.CONTROLLER_REVISIONS,
        resources.DATA_VOLUMES,
    )
}


def ends_the_same(case: dict[str, Any]) -> bool:
    """Whether end state, all events and the last queue outcome are the same from both starts."""
    ours, theirs = VMScene(case["input"]), VMScene(case["input"])
    recorded = expanded(case)
    _replay(theirs, case["input"], recorded["actions"])
    # The expectations of the recorded pass are met by then, and its caches show what it did.
    theirs.show()
    theirs.controller = VirtualMachineController(theirs.world)
    theirs.server.calls.clear()
    first, second = _to_rest(ours), _to_rest(theirs)
    second["events"] = [*recorded["events"], *second["events"]]
    return first == second


def _to_rest(scene: VMScene) -> dict[str, Any]:
    """Pass after pass, until one changes nothing."""
    queue: Any = None
    for _ in range(PASSES):
        before = copy.deepcopy(scene.server.objects)
        queue = scene.reconcile()["queue"]["result"]
        scene.show()
        scene.controller = VirtualMachineController(scene.world)
        if scene.server.objects == before and queue == "forgotten":
            break
    state = {f"{plural} {key}": _without_versions(obj) for (plural, key), obj in scene.server.objects.items()}
    return {"state": scene.told(state), "events": scene.events.seen, "queue": queue}


def _without_versions(obj: Object) -> Object:
    made = copy.deepcopy(obj)
    made["metadata"].pop("resourceVersion", None)
    if made.get("kind") == "ControllerRevision":
        del made["kind"], made["apiVersion"]  # not told of those that were recorded
    requests = (made.get("status") or {}).get("stateChangeRequests")
    if requests:
        # To be asked to start one time after another is to be asked once: of more the first counts.
        pairs = zip(requests, [{}, *requests], strict=False)
        again = [one["action"] == before.get("action") == "Start" for one, before in pairs]
        kept = [one for one, is_again in zip(requests, again, strict=True) if not is_again]
        made["status"]["stateChangeRequests"] = kept
    if made.get("kind") == "VirtualMachineInstance":
        # Its own controller writes these, if it is not made with them.
        notes = made["metadata"].get("annotations") or {}
        made["metadata"]["annotations"] = {
            key: notes[key] for key in notes if "observed-api-version" not in key
        }
    return made


def _replay(scene: VMScene, given: dict[str, Any], actions: Any) -> None:
    """Do on a server what the reference did."""
    namespace = given["vm"]["metadata"]["namespace"]
    for action in actions:
        resource = _RESOURCES.get(action["resource"])
        if resource is None or "error" in action or action["verb"] == "get":
            continue
        payload = _with_moments(action.get("payload"))
        key = f"{namespace}/{action['name']}"
        _do(scene, resource, key, action, payload)


def _do(scene: VMScene, resource: Resource, key: str, action: dict[str, Any], payload: Any) -> None:
    server = scene.server
    if action["verb"] == "create":
        meta = {"namespace": key.partition("/")[0], "uid": RANDOM, **payload["metadata"]}
        server.put(resource, {**payload, "metadata": meta})
        return
    held = server.peek(resource, key)
    assert held is not None
    if action["verb"] == "delete":
        new = copy.deepcopy(held)
        new["metadata"].setdefault("deletionTimestamp", timestamp(NOW))
    elif action["verb"] == "patch":
        new = apply_patch(held, payload)
        assert new is not None
    else:
        new = {**copy.deepcopy(held), **payload}
    server.store(resource, held, new)


def _with_moments(value: Any) -> Any:
    """A payload with moments in the place of words for them."""
    if isinstance(value, dict):
        return {key: _with_moments(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_with_moments(item) for item in value]
    return timestamp(NOW) if value == "<time>" else with_times(value)
