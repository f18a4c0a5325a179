"""A connection to a libvirt daemon that outlives the daemon: opened anew, with its callbacks,
when it broke.
"""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass

import libvirt

from kvnode.virt.errors import VirtError
from kvnode.virt.events import run_event_loop

#: ``on_lifecycle(domain name, event, detail)`` with libvirt's numbers; called in the event loop's thread.
LifecycleCallback = Callable[[str, int, int], None]
#: What is said of a daemon that takes a connection and answers nothing.
SILENT = "it takes the connection, and says nothing"
#: ``on_closed()``: the daemon went away; called in the event loop's thread.
ClosedCallback = Callable[[], None]

_RETRY_SECONDS = 0.02
_LOOK_SECONDS = 0.25
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
        self._opening: _Opening | None = None

    def open(self, timeout: float) -> None:
        """Connect, trying for ``timeout`` seconds; raises VirtError when the daemon never answered."""
        run_event_loop()
        end = time.monotonic() + timeout
        while (raw := self._try_to_open(timeout, end)) is None:
            time.sleep(_RETRY_SECONDS)
        try:
            raw.setKeepAlive(*_KEEPALIVE)
            raw.domainEventRegisterAny(None, libvirt.VIR_DOMAIN_EVENT_ID_LIFECYCLE, self._lifecycle, None)
            raw.registerCloseCallback(self._closed, None)
        except libvirt.libvirtError as error:
            raise VirtError("registering for libvirt's events", error) from None
        self._raw = raw

    def _try_to_open(self, timeout: float, end: float) -> libvirt.virConnect | None:
        """Try once, or go on with the try that has had no answer yet; None when there is time for another."""
        opening = self._opening or _Opening(self.uri)
        self._opening = opening
        if opening.wait(min(_LOOK_SECONDS, max(0.0, end - time.monotonic()))):
            self._opening = None
            if opening.raw is not None:
                return opening.raw
        error = opening.error or SILENT
        if time.monotonic() > end:
            raise VirtError(f"no libvirt daemon answered within {timeout:g} s", error) from None
        self.on_refused(str(error))
        return None

    def on_refused(self, why: str) -> None:
        """Called while there is no answer and time for one, a few times a second; does nothing here."""

    def reopen(self, timeout: float) -> None:
        """Drop the broken connection and open another; raises VirtError as :meth:`open` does."""
        self._drop()
        self.open(timeout)

    def close(self) -> None:
        """Close the connection; nothing is raised when it is broken."""
        opening, self._opening = self._opening, None
        if opening is not None:
            opening.abandon()
        self._drop()

    def _drop(self) -> None:
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


class _Opening:
    """One call of ``libvirt.open`` in a thread: it has no deadline, and a daemon that is stopped holds it for ever."""

    def __init__(self, uri: str) -> None:
        self.raw: libvirt.virConnect | None = None
        self.error: libvirt.libvirtError | None = None
        self._ended = threading.Event()
        self._lock = threading.Lock()
        self._abandoned = False
        threading.Thread(target=self._run, args=(uri,), name="libvirt-open", daemon=True).start()

    def wait(self, seconds: float) -> bool:
        """Whether it came to an end within that time."""
        return self._ended.wait(seconds)

    def abandon(self) -> None:
        """Nobody wants the connection any more: it is closed should it still come."""
        with self._lock:
            self._abandoned = True
            self._close()

    def _run(self, uri: str) -> None:
        try:
            raw = libvirt.open(uri)
            with self._lock:
                self.raw = raw
                if self._abandoned:
                    self._close()
        except libvirt.libvirtError as error:
            self.error = error
        finally:
            self._ended.set()

    def _close(self) -> None:
        raw, self.raw = self.raw, None
        if raw is not None:
            with contextlib.suppress(libvirt.libvirtError):
                raw.close()


def _dotted(version: int) -> str:
    return f"{version // 1_000_000}.{version // 1000 % 1000}.{version % 1000}"
