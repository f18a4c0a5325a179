"""What the guest agent told last, as its poller leaves it for those who ask."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from kvnode.virt.domain_json.schema.status import GUEST_OS_INFO
from kvnode.virt.payloads import guest
from kvnode.virt.payloads.stats import LOAD

#: Most users and file systems in the summary (``pkg/virt-launcher/virtwrap/manager.go:2553``).
MOST_LISTED = 10

# Field of the agent's summary to field of the domain's status.
_OS_FIELDS = {
    "name": "Name",
    "kernelRelease": "KernelRelease",
    "version": "Version",
    "prettyName": "PrettyName",
    "versionId": "VersionId",
    "kernelVersion": "KernelVersion",
    "machine": "Machine",
    "id": "Id",
}


@dataclass
class AgentStore:
    """The newest answers. Written and read in one event loop; values are replaced, never changed."""

    version: str = ""
    commands: Sequence[Mapping[str, Any]] = ()
    """``name`` and ``enabled`` of each command that the agent has (``guest.COMMAND``)."""

    hostname: str = ""
    os: Mapping[str, Any] | None = None
    """As in the domain's status (``schema.status.GUEST_OS_INFO``); None before the agent told."""

    timezone: tuple[str, int] = ("", 0)
    """Its name, and its offset from UTC in seconds."""

    interfaces: Sequence[Mapping[str, Any]] | None = None
    """As in the domain's status (``schema.status.INTERFACE_STATUS``); None before the agent told."""

    fs_freeze: str | None = None
    """``thawed`` or ``frozen``; None before the agent told."""

    users: Sequence[Mapping[str, Any]] = field(default_factory=list)
    """``guest.USER``."""

    filesystems: Sequence[Mapping[str, Any]] = field(default_factory=list)
    """``guest.FILESYSTEM``."""

    load: Mapping[str, Any] | None = None
    """``stats.LOAD``; None before the agent told."""

    def summary(self) -> dict[str, Any]:
        """All of it, as GetGuestInfo answers (``guest.AGENT_INFO``)."""
        told = self.os or GUEST_OS_INFO.zero()
        zone, offset = self.timezone
        return guest.AGENT_INFO.make(
            guestAgentVersion=self.version,
            supportedCommands=list(self.commands) or None,
            hostname=self.hostname,
            os=guest.OS.make(**{name: told[source] for name, source in _OS_FIELDS.items()}),
            timezone=f"{zone}, {offset}",
            userList=list(self.users[:MOST_LISTED]) or None,
            fsInfo=guest.FILESYSTEMS.make(disks=list(self.filesystems[:MOST_LISTED]) or None),
            fsFreezeStatus=self.fs_freeze or "",
        )

    def domain_fields(self) -> dict[str, Any]:
        """What belongs into the domain's status; fields of which the agent told nothing are left out."""
        fields: dict[str, Any] = {}
        if self.interfaces:  # null, not an empty list, where there are none
            fields["Interfaces"] = list(self.interfaces)
        if self.os is not None:
            fields["OSInfo"] = dict(self.os)
        if self.fs_freeze is not None:
            fields["FSFreezeStatus"] = {"Status": self.fs_freeze}
        return fields

    def load_stats(self) -> dict[str, Any]:
        """The guest's load, as statistics have it; nothing is set before the agent told."""
        return dict(self.load) if self.load is not None else LOAD.zero()
