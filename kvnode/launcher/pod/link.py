"""The connection to the libvirt daemon, for code in an event loop: opened anew when it broke, with every callback.

libvirt's calls block, so they run in a few threads (:meth:`Link.call`); its events come in a thread of its own and
are handed to the loop. A call that finds the connection broken fails; the next one has the new connection.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeVar

import libvirt

from kvnode.launcher.log import logger
from kvnode.virt.connection import SILENT, Connection
from kvnode.virt.errors import VirtError

Answer = TypeVar("Answer")

#: Threads for calls to libvirt: one that hangs does not hold up the others.
THREADS = 2
#: Seconds between looks at the connection when nothing was heard (``cmd/virt-launcher/virt-launcher.go:131``).
WATCH_SECONDS = 10.0
#: Seconds of silence after which it is said that the daemon does not answer.
SILENT_SECONDS = 4.0
#: Seconds for which a daemon may take connections and answer nothing until it is held for stuck. It may well take half
#: a minute to ask QEMU what it can do, before it answers the first time.
STUCK_SECONDS = 120.0
#: Seconds that one attempt to connect again may take, and the pause before the next.
ATTEMPT_SECONDS = 10.0
PAUSE_SECONDS = 0.5

#: ``callback(domain name, *the event's own arguments)``, called in the event loop.
EventCallback = Callable[..., None]


class Link(Connection):
    """One libvirt daemon, whatever becomes of its process."""

    def __init__(self, uri: str, loop: asyncio.AbstractEventLoop) -> None:
        """Remember where to connect. Nothing is opened yet; events will be handed to ``loop``."""
        super().__init__(uri, self._on_lifecycle_in_thread, self._on_closed_in_thread)
        self._loop = loop
        # libvirt takes one callback for each kind of event, so that ours are kept by kind.
        self._events: dict[int, list[EventCallback]] = {}
        self._on_reconnected: list[Callable[[], None]] = []
        self._executor = ThreadPoolExecutor(THREADS, "libvirt")
        self._broken = asyncio.Event()
        self._keeper: asyncio.Task[None] | None = None
        self._closing = False
        self._silent_since: float | None = None
        self._silence_told = False
        self._stuck_since: float | None = None
        self.on_stuck: Callable[[], None] = lambda: None
        """Called in the loop when the daemon takes connections, and has answered none for two minutes."""

    # ---- what is heard

    def on_event(self, event: int, callback: EventCallback) -> None:
        """Have ``callback(domain, ...)`` called in the loop for each event of that kind
        (``libvirt.VIR_DOMAIN_EVENT_ID_*``), on this connection and on those after it; to be said before the first
        is opened.
        """
        self._events.setdefault(event, []).append(callback)

    def on_reconnected(self, callback: Callable[[], None]) -> None:
        """Have ``callback()`` called in the loop after each new connection: events may have been missed."""
        self._on_reconnected.append(callback)

    def open(self, timeout: float) -> None:
        """Connect and register all callbacks; blocks. Raises VirtError."""
        super().open(timeout)
        if self._silence_told:
            logger.info("the libvirt daemon answers")
        self._silent_since, self._silence_told, self._stuck_since = None, False, None
        try:
            for event in self._events:
                if event != libvirt.VIR_DOMAIN_EVENT_ID_LIFECYCLE:  # registered for already
                    self.raw.domainEventRegisterAny(None, event, self._hand_over, event)
        except libvirt.libvirtError as error:
            self.close()
            raise VirtError("registering for libvirt's events", error) from None

    def on_refused(self, why: str) -> None:
        """Say once that the daemon does not answer, when that has lasted for some seconds."""
        now = time.monotonic()
        if self._silent_since is None:
            self._silent_since = now
        if not self._silence_told and now - self._silent_since > SILENT_SECONDS:
            self._silence_told = True
            logger.warning("the libvirt daemon does not answer yet (%s); trying again until it does", why)
        if why != SILENT:
            self._stuck_since = None
        elif self._stuck_since is None:
            self._stuck_since = now
        elif now - self._stuck_since > STUCK_SECONDS:
            self._stuck_since = None
            self._in_loop(self.on_stuck)

    def _hand_over(self, _connection: object, domain: libvirt.virDomain, *rest: Any) -> None:
        """Called in libvirt's thread; the last argument is the kind of event."""
        *arguments, event = rest
        self._in_loop(self._dispatch, event, domain.name(), *arguments)

    def _on_lifecycle_in_thread(self, domain: str, event: int, detail: int) -> None:
        self._in_loop(self._dispatch, libvirt.VIR_DOMAIN_EVENT_ID_LIFECYCLE, domain, event, detail)

    def _dispatch(self, event: int, domain: str, *arguments: Any) -> None:
        for callback in self._events.get(event, ()):
            callback(domain, *arguments)

    def _on_closed_in_thread(self) -> None:
        self._in_loop(self._broken.set)

    def _in_loop(self, callback: Callable[..., None], *arguments: Any) -> None:
        if not self._closing:
            self._loop.call_soon_threadsafe(callback, *arguments)

    # ---- what is asked

    async def call(self, function: Callable[..., Answer], *arguments: Any) -> Answer:
        """Run a blocking function in one of the threads."""
        return await self._loop.run_in_executor(self._executor, function, *arguments)

    # ---- how it is kept

    async def start(self, timeout: float) -> None:
        """Connect, and keep connected from now on; raises VirtError when nobody answered in ``timeout`` seconds."""
        await self.call(self.open, timeout)
        self._keeper = self._loop.create_task(self._keep(), name="libvirt-link")

    async def stop(self) -> None:
        """Close the connection for good. Calls that hang are left behind."""
        self._closing = True
        if self._keeper is not None:
            self._keeper.cancel()
        self._executor.shutdown(wait=False, cancel_futures=True)
        self.close()

    async def _keep(self) -> None:
        while True:
            try:
                await asyncio.wait_for(self._broken.wait(), WATCH_SECONDS)
            except TimeoutError:
                if await self._alive():
                    continue
            await self._connect_again()

    async def _alive(self) -> bool:
        """Whether the connection stands, as libvirt's keep-alive messages find it; no call that could hang."""
        try:
            return bool(self.raw.isAlive())
        except (VirtError, libvirt.libvirtError):
            return False

    async def _connect_again(self) -> None:
        logger.warning("the connection to the libvirt daemon is lost; connecting again")
        while True:
            self._broken.clear()
            try:
                await self.call(self.reopen, ATTEMPT_SECONDS)
                break
            except VirtError as error:
                logger.debug("%s", error)  # said once already
                await asyncio.sleep(PAUSE_SECONDS)
        logger.info("connected to the libvirt daemon again; callbacks are registered anew")
        for callback in self._on_reconnected:
            callback()
