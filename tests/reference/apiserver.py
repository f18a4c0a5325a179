"""An API server in memory that records every call: as strict as the one that the cases were recorded with."""

from __future__ import annotations

import copy
from typing import Any

from kvnode.controller.equality import bare
from kvnode.kube.client import PatchType
from kvnode.kube.errors import error_of_status
from kvnode.kube.objects import Object, is_deleting, key_of, metadata
from kvnode.kube.resources import Resource

CODES = {
    "Conflict": 409,
    "AlreadyExists": 409,
    "NotFound": 404,
    "Forbidden": 403,
    "Invalid": 422,
    "InternalError": 500,
    "Timeout": 504,
}
RANDOM = "<random>"


def _key(namespace: str, name: str) -> str:
    return f"{namespace}/{name}" if namespace else name


class RecordingServer:
    """Implements `kvnode.controller.ports.Api`; ``calls`` are what was asked of it, in order."""

    def __init__(self, errors: list[dict[str, Any]], now: str) -> None:
        self.objects: dict[tuple[str, str], Object] = {}
        self.calls: list[dict[str, Any]] = []
        self._errors = {(e["verb"], e["resource"], e.get("subresource") or ""): e["error"] for e in errors}
        self._now = now

    def put(self, resource: Resource, obj: Object) -> None:
        """Have the object, without a call."""
        self.objects[resource.plural, key_of(obj)] = copy.deepcopy(obj)

    def peek(self, resource: Resource, key: str) -> Object | None:
        """The object as it is, without a call."""
        return self.objects.get((resource.plural, key))

    def _record(self, verb: str, resource: Resource, subresource: str, **more: Any) -> dict[str, Any]:
        call = {"verb": verb, "resource": resource.plural, "subresource": subresource, **more}
        self.calls.append(call)
        if text := self._errors.get((verb, resource.plural, subresource)):
            reason = text.partition(" ")[0]
            self._refuse(call, reason if reason in CODES else "", text)
        return call

    def _refuse(self, call: dict[str, Any], reason: str, message: str = "") -> None:
        call["error"] = reason or "other"
        status = {"code": CODES.get(reason, 400), "reason": reason, "message": message or reason}
        raise error_of_status(status)

    def _existing(self, call: dict[str, Any], resource: Resource, key: str) -> Object:
        found = self.objects.get((resource.plural, key))
        if found is None:
            self._refuse(call, "NotFound")
        assert found is not None
        return found

    async def get(self, resource: Resource, name: str, namespace: str = "") -> Object:
        """Read."""
        call = self._record("get", resource, "", name=name)
        return copy.deepcopy(self._existing(call, resource, _key(namespace, name)))

    async def create(self, resource: Resource, obj: Object) -> Object:
        """Create, with a name and a UID if it has none."""
        meta = metadata(obj)
        names = {key: meta[key] for key in ("name", "generateName") if meta.get(key)}
        call = self._record("create", resource, "", payload=copy.deepcopy(obj), **names)
        made = copy.deepcopy(obj)
        made["metadata"].setdefault("name", f"{meta.get('generateName', '')}{RANDOM}")
        made["metadata"].setdefault("uid", RANDOM)
        made["metadata"]["resourceVersion"] = "1"
        if (resource.plural, key_of(made)) in self.objects:
            self._refuse(call, "AlreadyExists")
        self.put(resource, made)
        return made

    async def replace(self, resource: Resource, obj: Object, *, subresource: str = "") -> Object:
        """Write all but the status of a VM, or that alone; a VMI whole."""
        call = self._record(
            "update", resource, subresource, name=metadata(obj)["name"], payload=copy.deepcopy(obj)
        )
        held = self._existing(call, resource, key_of(obj))
        if metadata(obj).get("resourceVersion") != metadata(held).get("resourceVersion"):
            self._refuse(call, "Conflict")
        if subresource:
            new = {**held, "status": copy.deepcopy(obj.get("status") or {})}
        else:
            new = copy.deepcopy(obj)
            if resource.plural == "virtualmachines":
                new["status"] = held.get("status") or {}
        return self.store(resource, held, new)

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
        """Patch by any of the three kinds."""
        call = self._record(
            "patch", resource, subresource, name=name, patchType=str(kind), payload=copy.deepcopy(patch)
        )
        held = self._existing(call, resource, _key(namespace, name))
        new = apply_patch(held, patch)
        if new is None:
            self._refuse(call, "Invalid", f"the patch does not fit {name}")
        assert new is not None
        return self.store(resource, held, new)

    async def delete(
        self, resource: Resource, name: str, namespace: str = "", *, grace_seconds: int | None = None
    ) -> None:
        """Delete, or mark for deletion what has finalizers or, a pod, runs on a node."""
        options = {} if grace_seconds is None else {"payload": {"gracePeriodSeconds": grace_seconds}}
        call = self._record("delete", resource, "", name=name, **options)
        key = _key(namespace, name)
        held = self._existing(call, resource, key)
        on_node = resource.plural == "pods" and bool((held.get("spec") or {}).get("nodeName"))
        finished = (held.get("status") or {}).get("phase") in ("Succeeded", "Failed")
        if metadata(held).get("finalizers") or (on_node and not finished and grace_seconds != 0):
            new = copy.deepcopy(held)
            new["metadata"].setdefault("deletionTimestamp", self._now)
            self.store(resource, held, new)
        else:
            del self.objects[resource.plural, key]

    def store(self, resource: Resource, held: Object, new: Object) -> Object:
        """Have ``new`` in the place of ``held``; the answer is what is there then."""
        meta = new["metadata"]
        if bare(held) != bare(new):
            meta["resourceVersion"] = str(int(metadata(held).get("resourceVersion") or 1) + 1)
            if resource.plural == "virtualmachines" and bare(held.get("spec")) != bare(new.get("spec")):
                meta["generation"] = int(metadata(held).get("generation") or 0) + 1
        key = (resource.plural, key_of(new))
        if is_deleting(new) and not meta.get("finalizers") and resource.plural != "pods":
            self.objects.pop(key, None)
        else:
            self.objects[key] = new
        return copy.deepcopy(new)


def apply_patch(held: Object, patch: Object | list[Object]) -> Object | None:
    """A patched copy; None when a JSON patch cannot be applied."""
    new = copy.deepcopy(held)
    if not isinstance(patch, list):
        _merge(new, patch)
        return new
    return new if all(_apply(new, operation) for operation in patch) else None


def _apply(obj: Any, operation: dict[str, Any]) -> bool:
    """Apply an operation of a JSON patch; whether it could be."""
    steps = [one.replace("~1", "/").replace("~0", "~") for one in operation["path"].split("/")[1:]]
    *parents, last = steps
    for step in parents:
        if not isinstance(obj, dict):
            return False
        if obj.get(step) is None:
            if operation["op"] == "test" and operation["value"] is None:
                return True
            if operation["op"] != "add":
                return False
            obj[step] = {}  # typed objects have their parts, if empty
        obj = obj[step]
    match operation["op"]:
        case "test":
            return bool(bare({"v": obj.get(last)}) == bare({"v": operation["value"]}))
        case "remove":
            return obj.pop(last, None) is not None
        case _:
            obj[last] = copy.deepcopy(operation["value"])
            return True


def _merge(obj: dict[str, Any], patch: dict[str, Any]) -> None:
    for key, value in patch.items():
        if isinstance(value, dict):
            _merge(obj.setdefault(key, {}), value)
        elif key == "conditions":
            held = {one["type"]: one for one in obj.get(key) or ()}
            obj[key] = list((held | {one["type"]: one for one in value}).values())
        elif not key.startswith("$"):
            obj[key] = copy.deepcopy(value)
