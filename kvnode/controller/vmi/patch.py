"""The patch of a VMI that a node owns: only what is the controller's, each with a test (``life.go:628-721``)."""

from __future__ import annotations

from typing import Any

from kvnode.controller import conditions
from kvnode.controller.equality import equal
from kvnode.controller.jsonpatch import Operation, add, add_or_change, change, test
from kvnode.controller.meta import at
from kvnode.kube.objects import Object, metadata


def owned_patch(old: Object, new: Object) -> list[Operation]:
    """The difference between two VMIs, as far as the controller may write it."""
    patch: list[Operation] = []
    patch += _status(old, new, "volumeStatus")
    if not conditions.same(old, new):
        path, before = "/status/conditions", at(old, "status", "conditions")
        patch += add_or_change(path, before, conditions.conditions(new))
    patch += _status(old, new, "activePods")
    before, after = at(old, "status", "phase") or "", at(new, "status", "phase") or ""
    if before != after:
        patch += change("/status/phase", before, after)
    patch += _status(old, new, "launcherContainerImageVersion")
    for field in ("labels", "finalizers"):
        before, after = metadata(old).get(field), metadata(new).get(field)
        if (before or None) != (after or None):
            empty: Any = {} if field == "labels" else []
            patch += add_or_change(f"/metadata/{field}", before, after or empty)
    before, after = at(old, "status", "interfaces"), at(new, "status", "interfaces")
    if not equal(_by_name(before), _by_name(after)):
        patch += [test("/status/interfaces", before), add("/status/interfaces", after or [])]
    return patch


def _status(old: Object, new: Object, field: str) -> list[Operation]:
    before, after = at(old, "status", field), at(new, "status", field)
    if equal(before, after):
        return []
    empty: Any = {"volumeStatus": [], "activePods": {}}.get(field, "")
    return add_or_change(f"/status/{field}", before, after or empty)


def _by_name(interfaces: list[dict[str, Any]] | None) -> list[dict[str, Any]]:
    return sorted(interfaces or (), key=lambda one: str(one.get("name") or ""))
