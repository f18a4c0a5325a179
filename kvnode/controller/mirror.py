"""Annotations and labels kept the same on a VM, its VMI and its pod (``vm.go:3067``, ``life.go:724``)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from kvnode.controller.jsonpatch import Operation, add_or_change

Texts = Mapping[str, str]


def mirrored(patterns: Iterable[str], source: Texts, target: dict[str, str]) -> bool:
    """Make `target` have what `source` has at the patterns' keys; whether something was changed.

    A pattern is a key or, with ``*`` at its end, the start of keys; ``*`` alone is none.
    """
    changed = False
    for key in _keys(patterns, source, target):
        if source.get(key) == target.get(key):
            continue
        changed = True
        if key in source:
            target[key] = source[key]
        else:
            del target[key]
    return changed


def _keys(patterns: Iterable[str], source: Texts, target: Texts) -> list[str]:
    found: dict[str, None] = {}
    for pattern in patterns:
        if not pattern.endswith("*"):
            found |= dict.fromkeys([pattern] if pattern else [])
        elif prefix := pattern[:-1]:
            found |= dict.fromkeys(key for key in (*source, *target) if key.startswith(prefix))
    return list(found)


def mirror_patch(path: str, patterns: Iterable[str], source: Texts, target: Texts | None) -> list[Operation]:
    """The patch that makes an object's labels or annotations at `path` follow; empty when they do."""
    wanted = dict(target or {})
    if not mirrored(patterns, source, wanted):
        return []
    return add_or_change(path, None if target is None else dict(target), wanted)
