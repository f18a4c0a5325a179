"""What parts of the launcher are told about the VM and about their work; nothing else is loaded for it."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Subject:
    """The VMI that a launcher is for."""

    namespace: str
    name: str
    uid: str

    @property
    def domain(self) -> str:
        """Name of its domain."""
        return f"{self.namespace}_{self.name}"


@dataclass(frozen=True)
class Intervals:
    """Seconds between questions to the guest agent, by what is asked for; the defaults are the flags'."""

    system: float = 120.0
    files: float = 300.0
    users: float = 10.0
    version: float = 300.0
    freeze: float = 5.0
