"""What a running instance was given when it started and keeps when its manifest changes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from kvnode.api.names import PCI_TOPOLOGY_VERSION_ANNOTATION
from kvnode.provenance.document import Keys
from kvnode.provenance.live import field_verdict
from kvnode.provenance.units import ABSENT, get, put

__all__ = ["kept"]

_KEPT: tuple[Keys, ...] = (
    ("metadata", "uid"),
    ("metadata", "annotations", PCI_TOPOLOGY_VERSION_ANNOTATION),
    ("spec", "domain", "firmware", "uuid"),
)
_ROOM: tuple[tuple[Keys, Keys], ...] = (
    (("spec", "domain", "cpu", "maxSockets"), ("spec", "domain", "cpu", "sockets")),
    (("spec", "domain", "memory", "maxGuest"), ("spec", "domain", "memory", "guest")),
)
"""How far something can grow, and what grows: made anew by the restart that another value of it needs."""

_NEW_STATUS = ("memory", "currentCPUTopology")
"""Parts of the status that defaulting makes from the spec."""


def kept(running: Mapping[str, Any], wanted: Mapping[str, Any], written: Mapping[str, Any]) -> dict[str, Any]:
    """The wanted instance with what `written`, its form without defaults, leaves for the running one to
    decide."""
    made = dict(wanted)
    for keys in _KEPT:
        if get(written, keys) in (ABSENT, None, ""):
            made = _taken(made, running, keys)
    for room, keys in _ROOM:
        grows = get(running, keys) == get(wanted, keys)
        if get(written, room) in (ABSENT, None, 0) and (
            grows or field_verdict(".".join(map(str, keys)), running, wanted).live
        ):
            made = _taken(made, running, room)
    status, own = running.get("status"), wanted.get("status")
    if isinstance(status, Mapping):
        own = own if isinstance(own, Mapping) else {}
        fresh = {name: own[name] for name in _NEW_STATUS if name in own}
        made["status"] = {**own, **status, **fresh}
    return made


def _taken(made: dict[str, Any], running: Mapping[str, Any], keys: Keys) -> dict[str, Any]:
    value = get(running, keys)
    if value is ABSENT and get(made, keys) is ABSENT:
        return made
    taken: dict[str, Any] = put(made, keys, value)
    return taken
