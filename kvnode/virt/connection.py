"""A connection to a libvirt daemon that outlives the daemon: opened anew, with its callbacks,
when it broke.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass

import libvirt

from kvnode.virt.errors import VirtError
from kvnode.virt.events import run_event_loop

#: ``on_lifecycle(domain name, event, detail)`` with libvirt's numbers; called in the event loop's thread.
LifecycleCallback = Callable[[str, int, int], None]
#: ``on_closed()``: the daemon went away; called in the event loop's thread.
ClosedCallback = Callable[[], None]

_RETRY_SECONDS = 0.02
_KEEPALIVE = (5, 3)  # seconds between probes, and how many may go unanswered


@dataclass(frozen=True)
class Versions:
    """What is installed, as libvirt numbers: major * 1,000,000 + minor * 1,000 + release."""

    libvirt: int
    qemu: int

    def describe(self) -> str:
        """Return both for people: ``libvirt 9.0.0, QEMU 7.2.22``."""
        return f"libvirt {_dotted(self.libvirt)}, QEMU {_dotted(self.qemu)}"


class Connection:
    """One open connection; :meth:`reopen` replaces it in place."""

    def __init__(self, uri: str, on_lifecycle: LifecycleCallback, on_closed: ClosedCallback) -> None:
        """Remember where to connect and whom to call. Nothing is opened yet."""
        self.uri = uri
        self._on_lifecycle = on_lifecycle
        self._on_closed = on_closed
        self._raw: libvirt.virConnect | None = None

    def open(self, timeout: float) -> None:
        """Connect, trying for ``timeout`` seconds; raises VirtError when the daemon never answered."""
        run_event_loop()
        end = time.monotonic() + timeout
        while True:
            try:
                raw = libvirt.open(self.uri)
                break
            except libvirt.libvirtError as error:
                if time.monotonic() > end:
                    raise VirtError(f"no libvirt daemon answered within {timeout:g} s", error) from None
                self.on_refused(str(error))
            time.sleep(_RETRY_SECONDS)
        try:
            raw.setKeepAlive(*_KEEPALIVE)
            raw.domainEventRegisterAny(None, libvirt.VIR_DOMAIN_EVENT_ID_LIFECYCLE, self._lifecycle, None)
            raw.registerCloseCallback(self._closed, None)
        except libvirt.libvirtError as error:
            raise VirtError("registering for libvirt's events", error) from None
        self._raw = raw

    def on_refused(self, why: str) -> None:
        """Called for each try that failed while there is time for another; does nothing here."""

    def reopen(self, timeout: float) -> None:
        """Drop the broken connection and open another; raises VirtError as :meth:`open` does."""
        self.close()
        self.open(timeout)

    def close(self) -> None:
        """Close the connection; nothing is raised when it is broken."""
        raw, self._raw = self._raw, None
        if raw is None:
            return
        try:
            raw.unregisterCloseCallback()
            raw.close()
        except libvirt.libvirtError:
            return

    @property
    def raw(self) -> libvirt.virConnect:
        """libvirt's own object; raises VirtError when nothing is open."""
        if self._raw is None:
            raise VirtError("talking to libvirt", "there is no connection")
        return self._raw

    def answers(self) -> bool:
        """Tell whether the daemon at the other end still answers."""
        try:
            self.raw.getLibVersion()
        except (libvirt.libvirtError, VirtError):
            return False
        return True

    def versions(self) -> Versions:
        """Return the versions of the daemon's libvirt and of the QEMU that it runs."""
        try:
            return Versions(self.raw.getLibVersion(), self.raw.getVersion())
        except libvirt.libvirtError as error:
            raise VirtError("asking libvirt for its version", error) from None

    def _lifecycle(
        self, _connection: object, domain: libvirt.virDomain, event: int, detail: int, _opaque: object
    ) -> None:
        self._on_lifecycle(domain.name(), event, detail)

    def _closed(self, _connection: object, _reason: int, _opaque: object) -> None:
        self._on_closed()


def _dotted(version: int) -> str:
    return f"{version // 1_000_000}.{version // 1000 % 1000}.{version % 1000}"
