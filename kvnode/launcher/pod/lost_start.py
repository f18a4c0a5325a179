"""A start that was lost with the libvirt daemon that made it: noticed, undone, and made again.

See :mod:`kvnode.launcher.qemu_files` for what happens. It can only be found after a new connection, and only by
looking: the daemon says nothing and hangs on what it is asked to change.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path

import libvirt

from kvnode.launcher.log import logger
from kvnode.launcher.pod.link import Link
from kvnode.launcher.pod.supervise import Supervised
from kvnode.launcher.qemu_files import LOOK_SECONDS, LOST_SECONDS, forget_start, qemu_lives
from kvnode.virt.errors import VirtError

#: Seconds that libvirt has to tell the domain's state.
ANSWER_SECONDS = 5.0


class LostStart:
    """Looks after the one domain of this launcher; made and used in the event loop."""

    def __init__(
        self,
        link: Link,
        daemon: Supervised,
        domain: str,
        pid_file: Path,
        *,
        start_again: Callable[[], Awaitable[None]],
        on_settled: Callable[[], None],
    ) -> None:
        """Look at ``domain`` after each new connection of ``link``.

        ``start_again`` is called when libvirt's daemon is back and holds no start for its own; ``on_settled`` after
        that, whatever came of it.
        """
        self.under_way = False
        """Whether it is not known yet what became of the domain's start."""

        self._link = link
        self._daemon = daemon
        self._domain = domain
        self._pid_file = pid_file
        self._start_again = start_again
        self._on_settled = on_settled
        self._task: asyncio.Task[None] | None = None
        link.on_reconnected(self._begin)

    def stop(self) -> None:
        """Look no more."""
        if self._task is not None:
            self._task.cancel()

    def _begin(self) -> None:
        self.stop()
        self.under_way = True
        self._task = asyncio.get_running_loop().create_task(self._see_to_it(), name="lost-start")

    async def _see_to_it(self) -> None:
        try:
            if not await self._check():
                return  # another daemon, and another look
            await self._start_again()
        except Exception as error:  # left to the agent's next Sync
            logger.warning("a start that was cut short cannot be made up for: %s", error)
        self.under_way = False
        self._on_settled()

    async def _check(self) -> bool:
        """Whether the domain is what libvirt says. If not, the daemon is replaced by one that forgets the start."""
        loop = asyncio.get_running_loop()
        end = loop.time() + LOST_SECONDS
        # Doubtful at every look from the first on: a start that is made meanwhile finds the domain shut off before.
        while await self._is_doubtful():
            if loop.time() >= end:
                logger.error(
                    "the libvirt daemon ended while it started QEMU, and its successor waits for that QEMU for ever: "
                    "it is made to forget the start"
                )
                self._daemon.replace(lambda: forget_start(self._pid_file))
                return False
            await asyncio.sleep(LOOK_SECONDS)
        return True

    async def _is_doubtful(self) -> bool:
        """Whether there is no QEMU, and libvirt does not say that the domain is off."""
        if qemu_lives(self._pid_file):
            return False
        try:
            return await asyncio.wait_for(self._link.call(self._is_active), ANSWER_SECONDS)
        except TimeoutError:
            return True
        except VirtError:
            return False  # there will be another connection, and another check

    def _is_active(self) -> bool:
        try:
            return bool(self._link.raw.lookupByName(self._domain).isActive())
        except libvirt.libvirtError as error:
            if error.get_error_code() == libvirt.VIR_ERR_NO_DOMAIN:
                return False
            raise VirtError("asking for the domain's state", error) from None
