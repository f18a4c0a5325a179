"""Reading and changing the parts of objects, which are plain JSON mappings."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from kvnode.api.names import API_VERSION
from kvnode.controller import names
from kvnode.kube.objects import Object, controller_of, metadata, uid_of


def name_of(obj: Object) -> str:
    """The object's name."""
    return str(metadata(obj).get("name", ""))


def namespace_of(obj: Object) -> str:
    """The object's namespace."""
    return str(metadata(obj).get("namespace") or "")


def annotations_of(obj: Object) -> dict[str, str]:
    """The object's annotations, an empty mapping of nobody's when it has none."""
    return metadata(obj).get("annotations") or {}


def labels_of(obj: Object) -> dict[str, str]:
    """The object's labels, an empty mapping of nobody's when it has none."""
    return metadata(obj).get("labels") or {}


def finalizers(obj: Object) -> list[str]:
    """A list of the object's finalizers."""
    return list(metadata(obj).get("finalizers") or ())


def spec_of(obj: Object) -> dict[str, Any]:
    """The object's spec, an empty mapping of nobody's when it has none."""
    return obj.get("spec") or {}


def status_of(obj: Object) -> dict[str, Any]:
    """The object's status, made if it is not there."""
    status: dict[str, Any] | None = obj.get("status")
    if status is None:
        status = obj["status"] = {}
    return status


def at(obj: Mapping[str, Any] | None, *path: str) -> Any:
    """What is at the end of a path of keys; None if it leads nowhere."""
    found: Any = obj
    for key in path:
        if not isinstance(found, Mapping):
            return None
        found = found.get(key)
    return found


def put(mapping: dict[str, Any], key: str, value: Any) -> None:
    """Set a field, or take it out when its value says no more than its absence."""
    if not value:
        mapping.pop(key, None)
    else:
        mapping[key] = value


def remove_finalizer(obj: Object, name: str) -> None:
    """Take a finalizer off in memory."""
    meta = obj["metadata"]
    if name in finalizers(obj):
        put(meta, "finalizers", [kept for kept in meta["finalizers"] if kept != name])


def is_controlled_by(obj: Object, owner: Object) -> bool:
    """Whether an owner reference says that `owner` controls the object."""
    reference = controller_of(obj)
    return reference is not None and reference.get("uid") == uid_of(owner)


def controller_reference(owner: Object, kind: str) -> dict[str, Any]:
    """The reference by which an object of KubeVirt controls another."""
    return {
        "apiVersion": API_VERSION,
        "kind": kind,
        "name": name_of(owner),
        "uid": uid_of(owner),
        "controller": True,
        "blockOwnerDeletion": True,
    }


def is_api_observed(obj: Object) -> bool:
    """Whether the object has been written since this version of the API is stored (``ctl.go:240``)."""
    return annotations_of(obj).get(names.LATEST_API_ANNOTATION) == names.API_OBSERVED


def observe_api(obj: Object) -> None:
    """Note in memory that this version of the API is stored."""
    noted = dict(annotations_of(obj))
    noted[names.LATEST_API_ANNOTATION] = names.API_OBSERVED
    noted[names.STORAGE_API_ANNOTATION] = names.API_OBSERVED
    obj["metadata"]["annotations"] = noted
