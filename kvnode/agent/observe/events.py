"""What the agent told of VMs, as it is shown."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Event:
    """One word about a VM."""

    when: str
    """RFC 3339."""
    key: str
    kind: str
    """``Normal`` or ``Warning``."""
    reason: str
    message: str

    def says_the_same(self, other: Event) -> bool:
        """Whether it differs from another in its time alone."""
        mine = (self.key, self.kind, self.reason, self.message)
        return mine == (other.key, other.kind, other.reason, other.message)
