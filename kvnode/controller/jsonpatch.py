"""JSON patches (RFC 6902) that test what they replace."""

from __future__ import annotations

from typing import Any

Operation = dict[str, Any]


def add(path: str, value: Any) -> Operation:
    """Set what is at the path."""
    return {"op": "add", "path": path, "value": value}


def test(path: str, value: Any) -> Operation:
    """Refuse the patch unless this is at the path; None also stands for nothing there."""
    return {"op": "test", "path": path, "value": value}


def remove(path: str) -> Operation:
    """Take away what is at the path."""
    return {"op": "remove", "path": path}


def replace(path: str, value: Any) -> Operation:
    """Replace what is at the path."""
    return {"op": "replace", "path": path, "value": value}


def change(path: str, old: Any, new: Any) -> list[Operation]:
    """Replace `old`, which must still be there."""
    return [test(path, old), replace(path, new)]


def add_or_change(path: str, old: Any, new: Any) -> list[Operation]:
    """`change`, or `add` where there is nothing yet."""
    return [add(path, new)] if old is None else change(path, old, new)


def escape(key: str) -> str:
    """A key as part of a path."""
    return key.replace("~", "~0").replace("/", "~1")
