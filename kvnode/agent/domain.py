"""A domain as its launcher tells of it.

The mapping is `kvnode.virt.domain_json`'s. A launcher may lie about its own VM and leave out what it likes: all reads
take what is absent for not set.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

RUNNING, BLOCKED, PAUSED, PM_SUSPENDED = "Running", "Blocked", "Paused", "PMSuspended"
SHUTTING_DOWN, SHUTOFF, CRASHED, UNKNOWN = "ShuttingDown", "Shutoff", "Crashed", "Unknown"

GUEST_AGENT_CHANNEL = "org.qemu.guest_agent.0"


class Domain:
    """A view of one domain; the mapping below is never changed."""

    __slots__ = ("raw",)

    def __init__(self, raw: Mapping[str, Any]) -> None:
        """`raw` is a decoded ``Domain``."""
        self.raw = raw

    def spec(self, *path: str) -> Any:
        """What is below ``Spec`` at ``path``; None when a part of it is missing."""
        return _at(self.raw.get("Spec"), path)

    def state(self, *path: str) -> Any:
        """What is below ``Status`` at ``path``."""
        return _at(self.raw.get("Status"), path)

    def metadata(self, *path: str) -> Any:
        """What is below KubeVirt's own metadata at ``path``."""
        return self.spec("Metadata", "KubeVirt", *path)

    def devices(self, kind: str) -> list[Mapping[str, Any]]:
        """The devices of a kind (``Disks``, ``Interfaces``, ``HostDevices``, ``Channels``)."""
        return [device for device in self.spec("Devices", kind) or [] if isinstance(device, Mapping)]

    @property
    def key(self) -> str:
        """``namespace/name``."""
        meta = self.raw.get("ObjectMeta") or {}
        return f"{meta.get('namespace') or ''}/{meta.get('name') or ''}"

    @property
    def uid(self) -> str:
        """UID of the VMI that it was made for."""
        return str(self.metadata("UID") or "")

    @property
    def is_deleted(self) -> bool:
        """Whether the launcher, or the watch over it, says that the domain is gone."""
        return bool((self.raw.get("ObjectMeta") or {}).get("deletionTimestamp"))

    @property
    def status(self) -> str:
        """libvirt's state under KubeVirt's name; "" when none was told."""
        return str(self.state("Status") or "")

    @property
    def reason(self) -> str:
        """Why it is in this state."""
        return str(self.state("Reason") or "")

    @property
    def is_alive(self) -> bool:
        """Whether there is a guest that could still be shut down."""
        return self.status not in (SHUTOFF, CRASHED, "")

    @property
    def is_migrated(self) -> bool:
        """Whether the guest runs on another node now."""
        return self.status == SHUTOFF and self.reason == "Migrated"

    @property
    def failed_post_copy(self) -> bool:
        """Whether half of the guest's memory is lost to a migration that broke off."""
        return self.status == PAUSED and self.reason == "PostcopyFailed"

    @property
    def has_io_error(self) -> bool:
        """Whether libvirt paused it because its storage failed."""
        return self.status == PAUSED and self.reason == "IOError"

    @property
    def has_acpi(self) -> bool:
        """Whether the guest can be asked to shut down."""
        return self.spec("Features", "ACPI") is not None

    @property
    def grace_seconds(self) -> int | None:
        """Grace period in the domain's metadata; None when there is none."""
        if self.metadata("GracePeriod") is None:
            return None
        seconds = self.metadata("GracePeriod", "DeletionGracePeriodSeconds")
        return seconds if isinstance(seconds, int) else 0

    @property
    def shutdown_began(self) -> datetime | None:
        """When the launcher first passed a shutdown on to the guest."""
        text = self.metadata("GracePeriod", "DeletionTimestamp")
        try:
            moment = datetime.fromisoformat(str(text)) if text else None
        except ValueError:
            return None
        return moment.replace(tzinfo=UTC) if moment and moment.tzinfo is None else moment

    @property
    def asks_for_shutdown(self) -> bool:
        """Whether the launcher was told to end, and wants its guest shut down first."""
        return self.metadata("GracePeriod", "MarkedForGracefulShutdown") is True

    @property
    def has_guest_agent(self) -> bool:
        """Whether the guest's agent holds its channel open."""
        return any(
            _at(channel, ("Target", "Name")) == GUEST_AGENT_CHANNEL
            and _at(channel, ("Target", "State")) == "connected"
            for channel in self.devices("Channels")
        )


def alias_of(device: Mapping[str, Any]) -> str:
    """A device's alias without libvirt's prefix, "" when it has none."""
    return str(_at(device, ("Alias", "Name")) or "")


def _at(value: Any, path: tuple[str, ...]) -> Any:
    for name in path:
        if not isinstance(value, Mapping):
            return None
        value = value.get(name)
    return value
