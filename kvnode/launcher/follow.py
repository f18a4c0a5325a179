"""From a started guest to its end: events, signals, a daemon that went away, and the power button."""

from __future__ import annotations

import json
import queue
import signal
import time
from dataclasses import dataclass
from pathlib import Path

import libvirt

from kvnode.launcher.log import logger
from kvnode.virt.connection import Connection
from kvnode.virt.domain import Domain, DomainState
from kvnode.virt.errors import VirtError

#: Seconds between looks at the domain when no event comes: one may be lost while a daemon restarts.
POLL_SECONDS = 5.0
#: Seconds between two presses of the power button: an operating system that boots does not hear the first.
PRESS_SECONDS = 5.0
#: Seconds that the libvirt daemon may take to come back.
RECONNECT_SECONDS = 60.0

_STOPS = {libvirt.VIR_DOMAIN_EVENT_STOPPED, libvirt.VIR_DOMAIN_EVENT_CRASHED}


class Mailbox:
    """What the threads and signal handlers tell the main thread. SimpleQueue's put may interrupt its get."""

    def __init__(self) -> None:
        """Start empty."""
        self._queue: queue.SimpleQueue[str] = queue.SimpleQueue()
        self.panicked = False

    def on_signal(self, _number: int, _frame: object) -> None:
        """Tell of a signal to stop."""
        self._queue.put("stop")

    def on_lifecycle(self, _domain: str, event: int, detail: int) -> None:
        """Tell of a domain that ended; other events are for the log."""
        logger.info("domain event %d, detail %d", event, detail)
        if event == libvirt.VIR_DOMAIN_EVENT_CRASHED:
            self.panicked = True  # the state that follows does not tell a panic from a QEMU that died
        if event in _STOPS:
            self._queue.put("ended")

    def on_closed(self) -> None:
        """Tell of a broken connection."""
        self._queue.put("closed")

    def get(self, timeout: float) -> str:
        """Wait for news; ``""`` when there was none in ``timeout`` seconds."""
        try:
            return self._queue.get(timeout=max(0.0, timeout))
        except queue.Empty:
            return ""

    def install(self) -> None:
        """Take SIGTERM, SIGINT, SIGQUIT and SIGHUP as the wish to stop."""
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGQUIT, signal.SIGHUP):
            signal.signal(number, self.on_signal)


@dataclass
class _Stop:
    """A stop under way; times are of the monotonic clock."""

    deadline: float
    next_press: float
    at_once: bool
    destroyed: bool = False


class Follower:
    """Follows one domain to its end."""

    def __init__(
        self, connection: Connection, domain: Domain, mailbox: Mailbox, grace: float, request: Path
    ) -> None:
        """Stop within ``grace`` seconds when asked, unless the file ``request`` says otherwise."""
        self._connection = connection
        self._domain = domain
        self._mailbox = mailbox
        self._grace = grace
        self._request = request
        self._stop: _Stop | None = None

    @property
    def stopping(self) -> bool:
        """Tell whether the stop was asked for."""
        return self._stop is not None

    @property
    def panicked(self) -> bool:
        """Tell whether the guest said that it panicked."""
        return self._mailbox.panicked

    @property
    def destroyed(self) -> str:
        """Say why the guest was destroyed; empty when it was not."""
        if self._stop is None or not self._stop.destroyed:
            return ""
        return (
            "was ended at once, as asked"
            if self._stop.at_once
            else "did not shut down in time and was destroyed"
        )

    def run(self) -> DomainState:
        """Return how the domain ended; raises VirtError when libvirt stayed away."""
        while True:
            news = self._mailbox.get(self._next_turn())
            if news == "stop":
                self._begin_stop()
            try:
                state = self._state(news)
                if not state.active:
                    return state
                self._go_on_stopping()
            except VirtError as error:
                logger.warning("%s; connecting again", error)
                self._connection.reopen(RECONNECT_SECONDS)
                logger.info("connected again")

    def _state(self, news: str) -> DomainState:
        if news == "closed":
            raise VirtError("following the guest", "the libvirt daemon went away")
        return self._domain.state()

    def _next_turn(self) -> float:
        if self._stop is None:
            return POLL_SECONDS
        return min(POLL_SECONDS, max(0.2, min(self._stop.deadline, self._stop.next_press) - time.monotonic()))

    def _begin_stop(self) -> None:
        """Start the stop, or shorten it when it is asked for again with less time."""
        grace = self._asked_grace()
        now = time.monotonic()
        if self._stop is None:
            logger.info("stopping within %g s", grace)
            self._stop = _Stop(now + grace, now, at_once=grace == 0)
        else:
            self._stop.deadline = min(self._stop.deadline, now + grace)
            self._stop.at_once |= grace == 0

    def _asked_grace(self) -> float:
        try:
            asked = json.loads(self._request.read_bytes())["grace"]
            return max(0.0, float(asked))
        except (OSError, ValueError, KeyError, TypeError):
            return self._grace

    def _go_on_stopping(self) -> None:
        stop = self._stop
        if stop is None:
            return
        now = time.monotonic()
        if now >= stop.deadline:
            logger.warning("the grace period is over; destroying the guest")
            stop.destroyed = True
            self._domain.destroy()
        elif now >= stop.next_press:
            stop.next_press = now + PRESS_SECONDS
            self._domain.press_power_button()
