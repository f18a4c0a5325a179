"""QEMU as a process, and how long it may live (``pkg/virt-launcher/monitor.go``).

After the signal to stop, the launcher does not stop the guest: it notes in the domain's metadata that it is to be
stopped, which the node agent hears of and does. Only when the grace period is over is QEMU ended from here.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

from kvnode.launcher.log import logger
from kvnode.launcher.qemu_files import is_alive

#: Seconds between looks, and while there is a process to wait for and nothing else to do.
TICK_SECONDS, IDLE_SECONDS = 1.0, 10.0


class QemuProcess:
    """Follows the process that a file names the id of."""

    def __init__(
        self,
        pid_file: Path,
        *,
        start_timeout: float,
        grace: float,
        on_stop: Callable[[], Awaitable[None]],
        kill: Callable[[], Awaitable[bool]],
        has_run: Callable[[], bool],
        is_over: Callable[[], bool],
        give_up: Callable[[], bool],
    ) -> None:
        """Prepare to follow.

        ``on_stop`` is called once when the stop is asked for. ``kill`` ends QEMU by way of libvirt and tells
        whether that could be asked for; it is called each second from ``grace`` seconds after that on.
        ``has_run`` says that libvirt has called the guest started; a process that ended before was a start that
        failed, and there may be another. ``is_over`` says that libvirt has seen the end: QEMU may be gone before
        its process was found.
        ``give_up`` says that nobody waits for this VM any more.
        """
        self.pid = 0
        self._pid_file = pid_file
        self._start_timeout = start_timeout
        self._grace = grace
        self._on_stop = on_stop
        self._kill = kill
        self._has_run = has_run
        self._is_over = is_over
        self._give_up = give_up
        self._stopped_at: float | None = None

    async def follow(self, stop: asyncio.Event) -> None:
        """Return when QEMU is gone, or when there is no more reason to wait for it.

        Without a process, that is after ``start_timeout`` seconds (0: never), or when ``stop`` is set.
        """
        began = time.monotonic()
        while True:
            await self._tick(stop)
            if self._give_up():
                logger.info("nobody waits for this VM any more")
                return
            if not self.pid and not self._find():
                if self._is_over():
                    logger.info("QEMU is gone")
                    return
                elapsed = time.monotonic() - began
                if self._stopped_at is not None or 0 < self._start_timeout <= elapsed:
                    logger.info("there is no QEMU after %.0f s", elapsed)
                    return
                continue
            if not is_alive(self.pid):
                logger.info("QEMU (process %d) is gone", self.pid)
                if self._has_run() or self._is_over():
                    return
                logger.warning("the guest had not been started yet")
                self.pid, began = 0, time.monotonic()
                continue
            if self._stopped_at is not None and time.monotonic() - self._stopped_at > self._grace:
                await self._end()

    async def _tick(self, stop: asyncio.Event) -> None:
        """Wait for a while, or for the first word of the stop, or for the end of the process."""
        pause = IDLE_SECONDS if self.pid and self._stopped_at is None else TICK_SECONDS
        waiting: list[asyncio.Future[Any]] = [asyncio.ensure_future(asyncio.sleep(pause))]
        if self._stopped_at is None:
            waiting.append(asyncio.ensure_future(stop.wait()))
        if self.pid:
            waiting.append(asyncio.ensure_future(_ended(self.pid)))
        try:
            await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for one in waiting:
                one.cancel()
            await asyncio.gather(*waiting, return_exceptions=True)
        if stop.is_set() and self._stopped_at is None:
            self._stopped_at = time.monotonic()
            await self._on_stop()

    def _find(self) -> bool:
        try:
            pid = int(self._pid_file.read_text(encoding="ascii"))
        except (OSError, ValueError):
            return False
        if not is_alive(pid) and not self._has_run():
            return False  # the file is left from a start that failed
        self.pid = pid
        logger.info("QEMU is process %d", self.pid)
        return True

    async def _end(self) -> None:
        logger.warning("the grace period is over: ending QEMU")
        if not await self._kill():
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.kill(self.pid, signal.SIGTERM)


async def _ended(pid: int) -> None:
    """Wait until a process has ended."""
    try:
        descriptor = os.pidfd_open(pid)
    except OSError:
        return
    loop = asyncio.get_running_loop()
    ended = asyncio.Event()
    loop.add_reader(descriptor, ended.set)
    try:
        await ended.wait()
    finally:
        loop.remove_reader(descriptor)
        os.close(descriptor)
