"""The one write of a pass: a merge patch of what changed, none when nothing did."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from kvnode.agent.errors import FAILURES
from kvnode.agent.parts import Parts
from kvnode.agent.vmi import Vmi, copy_of, key_of, metadata
from kvnode.kube.errors import Invalid

_STEP = re.compile(r"[^.\[\]]+")


def has_changed(old: Mapping[str, Any], new: Mapping[str, Any]) -> bool:
    """Whether two statuses differ in more than what is empty."""
    return bool(_bare(old) != _bare(new))


def _bare(value: Any) -> Any:
    if isinstance(value, Mapping):
        items = {name: _bare(item) for name, item in value.items()}
        return {name: item for name, item in items.items() if item not in (None, "", [], {})}
    return [_bare(item) for item in value] if isinstance(value, list) else value


def status_patch(old: Vmi, new: Vmi) -> dict[str, Any]:
    """The merge patch from one status to the other.

    Lists go whole. The version is in it: two writers of the conditions must not undo each other's.
    """
    patch: dict[str, Any] = {"status": _merge_patch(old.get("status") or {}, new.get("status") or {})}
    if version := metadata(old).get("resourceVersion"):
        patch["metadata"] = {"resourceVersion": version}
    return patch


def _merge_patch(old: Mapping[str, Any], new: Mapping[str, Any]) -> dict[str, Any]:
    patch: dict[str, Any] = {name: None for name in old if name not in new}
    for name, value in new.items():
        before = old.get(name)
        if isinstance(value, Mapping) and isinstance(before, Mapping):
            if inner := _merge_patch(before, value):
                patch[name] = inner
        elif name not in old or value != before:
            patch[name] = value
    return patch


async def write_status(old: Vmi, new: Vmi, parts: Parts) -> None:
    """Write the status of ``new`` if it has changed, and wait for the watch to show it before the next pass.

    Fields that the API server refuses are taken out and named in an Event: the phase must not hang on them.
    """
    if not has_changed(old["status"], new["status"]):
        return
    key = key_of(new)
    parts.expectations.expect_creations(key, 1)
    try:
        try:
            await parts.api.write_status(old, new)
        except Invalid as error:
            rest = without_refused(old, new, error)
            if rest is None:
                raise
            parts.recorder.event(new, "Warning", "StatusFieldRefused", str(error))
            if not has_changed(old["status"], rest["status"]):
                parts.expectations.clear(key)
                return
            await parts.api.write_status(old, rest)
    except FAILURES:
        parts.expectations.clear(key)
        raise


def without_refused(old: Vmi, new: Vmi, error: Invalid) -> Vmi | None:
    """A copy of ``new`` without the fields that the server named; None when it named none that is there."""
    rest = copy_of(new)
    found = False
    for cause in error.details.get("causes") or ():
        field = cause.get("field") if isinstance(cause, Mapping) else None
        steps = _STEP.findall(str(field or ""))
        if steps and steps[0] == "status" and len(steps) > 1:
            found |= _revert(old["status"], rest["status"], steps[1:])
    return rest if found else None


def _revert(old: Any, new: Any, steps: list[str]) -> bool:
    """Put a field back to what it was, or take it out."""
    for step in steps[:-1]:
        old, new = _child(old, step), _child(new, step)
    last = steps[-1]
    if not isinstance(new, dict) or last not in new:
        return False
    if isinstance(old, dict) and last in old and old[last] != new[last]:
        new[last] = old[last]
    else:
        del new[last]
    return True


def _child(value: Any, step: str) -> Any:
    if isinstance(value, list):
        return value[int(step)] if step.isdecimal() and int(step) < len(value) else None
    return value.get(step) if isinstance(value, dict) else None
