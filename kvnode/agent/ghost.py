"""A launcher that was found beside a VMI, as its record on disk names it."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Ghost:
    """A launcher that was found beside a VMI."""

    namespace: str
    name: str
    uid: str
    socket: str
    """Path of its command socket on this node."""

    @property
    def key(self) -> str:
        """``namespace/name``."""
        return f"{self.namespace}/{self.name}"
