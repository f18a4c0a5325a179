"""One domain: define, start, press its power button, destroy, and how it ended."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import libvirt

from kvnode.virt.connection import Connection
from kvnode.virt.errors import VirtError

_CRASHES = {
    libvirt.VIR_DOMAIN_SHUTOFF_CRASHED: "QEMU was killed or crashed",
    libvirt.VIR_DOMAIN_SHUTOFF_FAILED: "QEMU did not start",
    libvirt.VIR_DOMAIN_SHUTOFF_DAEMON: "the libvirt daemon lost the domain",
}
_ENDS = {
    libvirt.VIR_DOMAIN_SHUTOFF_SHUTDOWN: "the guest shut down",
    libvirt.VIR_DOMAIN_SHUTOFF_DESTROYED: "the domain was destroyed",
    libvirt.VIR_DOMAIN_SHUTOFF_SAVED: "the domain was saved",
    libvirt.VIR_DOMAIN_SHUTOFF_FROM_SNAPSHOT: "the domain was put back to a snapshot",
}


@dataclass(frozen=True)
class DomainState:
    """Where a domain stands."""

    active: bool
    """QEMU runs it (paused counts)."""

    crashed: bool
    """It ended in another way than by shutting down or being destroyed."""

    reason: str
    """One line for people on how it ended; empty while it is active."""


class Domain:
    """A domain by its name; looked up for each call, so that a new connection needs no new handle."""

    def __init__(self, connection: Connection, name: str) -> None:
        """Refer to the domain ``name``; it need not exist yet."""
        self._connection = connection
        self.name = name

    def define(self, xml: str) -> None:
        """Define the domain; raises VirtError with what libvirt said."""
        try:
            self._connection.raw.defineXML(xml)
        except libvirt.libvirtError as error:
            raise VirtError("libvirt does not take the domain", error) from None

    def start(self) -> None:
        """Start QEMU; raises VirtError with what libvirt or QEMU said."""
        self._call("starting the guest", lambda domain: domain.create())

    def press_power_button(self) -> None:
        """Ask the guest to shut down: by its agent if it has one, else by ACPI. One that ended
        is left alone.
        """
        self._call_active("asking the guest to shut down", lambda domain: domain.shutdown())

    def destroy(self) -> None:
        """End QEMU: SIGTERM, and SIGKILL when that was not enough. One that ended is left alone."""
        try:
            self._call_active(
                "ending the guest", lambda domain: domain.destroyFlags(libvirt.VIR_DOMAIN_DESTROY_GRACEFUL)
            )
        except VirtError:
            self._call_active("ending the guest", lambda domain: domain.destroy())

    def state(self) -> DomainState:
        """Return where the domain stands; one that libvirt does not know counts as crashed."""
        try:
            state, reason = self._connection.raw.lookupByName(self.name).state()
        except libvirt.libvirtError as error:
            if error.get_error_code() == libvirt.VIR_ERR_NO_DOMAIN:
                return DomainState(False, True, "libvirt does not know the domain any more")
            raise VirtError("asking for the guest's state", error) from None
        if state == libvirt.VIR_DOMAIN_CRASHED:
            return DomainState(False, True, "the guest panicked")
        if state != libvirt.VIR_DOMAIN_SHUTOFF:
            return DomainState(True, False, "")
        if reason in _ENDS:
            return DomainState(False, False, _ENDS[reason])
        return DomainState(
            False, True, _CRASHES.get(reason, "the domain ended for a reason unknown to libvirt")
        )

    def _call(self, doing: str, action: Callable[[libvirt.virDomain], object]) -> None:
        try:
            action(self._connection.raw.lookupByName(self.name))
        except libvirt.libvirtError as error:
            raise VirtError(doing, error) from None

    def _call_active(self, doing: str, action: Callable[[libvirt.virDomain], object]) -> None:
        try:
            domain = self._connection.raw.lookupByName(self.name)
            if domain.isActive():
                action(domain)
        except libvirt.libvirtError as error:
            if error.get_error_code() in {libvirt.VIR_ERR_NO_DOMAIN, libvirt.VIR_ERR_OPERATION_INVALID}:
                return
            raise VirtError(doing, error) from None
