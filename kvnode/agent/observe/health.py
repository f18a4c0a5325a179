"""Whether the agent does its work, and whether it is ready for VMs, each with the reason why not.

An API server that is away does not make the agent unhealthy: it would be no better after a restart.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

STUCK = 300.0
"""Seconds after which a pass is taken for one that will never end: what it waits for takes 60 at most, each."""
IDLE = 120.0
"""Seconds without a look at any launcher after which nobody looks any more: each call takes 7 at most."""


@dataclass(frozen=True, slots=True)
class Health:
    """The agent's parts, as far as they tell of its health."""

    running: Callable[[], Mapping[str, float]]
    """The VMIs that are worked on, and seconds since that began."""
    since_round: Callable[[], float]
    """Seconds since a launcher was last looked after, or since there was none to be."""
    connected: Callable[[], bool]
    """Whether the watches have begun and all launchers were asked."""
    plugins: Callable[[], bool]
    """Whether kubelet took the device plugins."""
    watches: Callable[[], Mapping[str, str]]
    """Of each watch that is not there or is broken: its name and what is wrong."""

    def sick(self) -> list[str]:
        """Why the agent should be started anew; nothing when it is well."""
        found = [
            f"the pass over {key} has not ended for {seconds:.0f} s"
            for key, seconds in self.running().items()
            if seconds > STUCK
        ]
        if self.connected() and (seconds := self.since_round()) > IDLE:
            found.append(f"no launcher has been looked after for {seconds:.0f} s")
        return found

    def not_ready(self) -> list[str]:
        """What is missing until VMs can be looked after; nothing when all is there."""
        found = [f"{name}: {reason}" for name, reason in self.watches().items()]
        if not found and not self.connected():
            found.append("not all launchers of the node have been asked yet")
        if not self.plugins():
            found.append("kubelet has not taken the device plugins yet")
        return found
