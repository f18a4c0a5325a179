"""What the guest agent last told: kept for the answers to the node agent and for the domain's status.

Values are under the names of the tables that they are written with: ``os`` and ``interfaces`` are
``GUEST_OS_INFO`` and ``INTERFACE_STATUS`` of :mod:`kvnode.virt.domain_json.schema.status`; ``users``,
``filesystems`` and ``commands`` are ``USER``, ``FILESYSTEM`` and ``COMMAND`` of
:mod:`kvnode.virt.payloads.guest`. The rules are those of
``pkg/virt-launcher/virtwrap/agent-poller/agent_poller.go``: what was told stays when the agent goes away.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

Json = Mapping[str, Any]

#: A change of these is told to the node agent.
_TOLD = ("os", "interfaces", "freeze")


@dataclass
class GuestAgentStore:
    """The latest of each answer; None or empty until there was one. Written and read in the event loop."""

    version: str = ""
    """The agent's own version; "" means that no agent has answered yet."""

    commands: Sequence[Json] = ()
    """The commands that the agent knows."""

    hostname: str = ""
    timezone: tuple[str, int] = ("", 0)
    """Name and offset from UTC in seconds."""

    os: Json | None = None
    interfaces: Sequence[Json] | None = None
    freeze: str | None = None
    """State of the guest's file systems: ``thawed`` or ``frozen``."""

    users: Sequence[Json] = ()
    filesystems: Sequence[Json] = ()
    load: Mapping[str, float] = field(default_factory=dict)
    """``load.1m``, ``load.5m`` and ``load.15m``, as far as the guest tells them."""

    on_change: Callable[[], None] | None = None
    """Called when something changed that the node agent is told of."""

    def update(self, **values: Any) -> None:
        """Keep these values; raises AttributeError for a name that is none of the fields."""
        told = False
        for name, value in values.items():
            told |= getattr(self, name) != value and name in _TOLD
            setattr(self, name, value)
        if told and self.on_change is not None:
            self.on_change()

    def status_fields(self) -> dict[str, Any]:
        """What belongs into a domain's ``Status``."""
        fields: dict[str, Any] = {}
        if self.interfaces is not None:
            fields["Interfaces"] = list(self.interfaces)
        if self.os is not None:
            fields["OSInfo"] = dict(self.os)
        if self.freeze is not None:
            fields["FSFreezeStatus"] = {"Status": self.freeze}
        return fields
