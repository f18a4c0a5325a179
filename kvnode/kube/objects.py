"""Reading the parts that every object has. Objects are plain JSON mappings."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

Object = dict[str, Any]


def metadata(obj: Object) -> dict[str, Any]:
    """The object's metadata, an empty mapping when it has none."""
    found = obj.get("metadata")
    return found if isinstance(found, dict) else {}


def key_of(obj: Object) -> str:
    """``namespace/name``, or the name alone of an object without namespace."""
    meta = metadata(obj)
    namespace = meta.get("namespace") or ""
    return f"{namespace}/{meta.get('name', '')}" if namespace else str(meta.get("name", ""))


def split_key(key: str) -> tuple[str, str]:
    """Namespace ("" when there is none) and name of a key."""
    namespace, _, name = key.rpartition("/")
    return namespace, name


def uid_of(obj: Object) -> str:
    """The object's UID, "" before it has one."""
    return str(metadata(obj).get("uid") or "")


def version_of(obj: Object) -> int:
    """The resource version as a number; 0 when there is none that is a number.

    Within one resource the API server's versions are numbers that grow.
    """
    text = metadata(obj).get("resourceVersion")
    return int(text) if isinstance(text, str) and text.isascii() and text.isdigit() else 0


def is_deleting(obj: Object) -> bool:
    """Whether the object has been told to go."""
    return bool(metadata(obj).get("deletionTimestamp"))


def controller_of(obj: Object) -> dict[str, Any] | None:
    """The owner reference that controls the object."""
    for reference in metadata(obj).get("ownerReferences") or ():
        if reference.get("controller"):
            return dict(reference)
    return None


def utc_now() -> datetime:
    """The time of day."""
    return datetime.now(UTC)


def timestamp(moment: datetime) -> str:
    """A moment as ``metav1.Time`` has it: whole seconds."""
    return moment.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def micro_timestamp(moment: datetime) -> str:
    """A moment as ``metav1.MicroTime`` has it."""
    return moment.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
