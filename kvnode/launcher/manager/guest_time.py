"""The guest's clock, set right after it stood still (``pkg/virt-launcher/virtwrap/manager.go:445``)."""

from __future__ import annotations

import asyncio
import time

import libvirt

from kvnode.launcher.log import logger
from kvnode.launcher.manager.host import Host

#: Seconds for which it is tried, and between tries: the agent takes its time to wake up.
TRY_SECONDS, PAUSE_SECONDS = 60.0, 1.0

# The guest has no agent, or one that cannot: trying again will not help.
_FINAL = (libvirt.VIR_ERR_OPERATION_UNSUPPORTED, libvirt.VIR_ERR_ARGUMENT_UNSUPPORTED)


class GuestTime:
    """Sets the clock in the background; where the guest has no agent, nothing happens."""

    def __init__(self, host: Host) -> None:
        """Act on the domain of ``host``."""
        self._host = host
        self._task: asyncio.Task[None] | None = None

    def set_soon(self) -> None:
        """Begin to try; what tried before stops."""
        if self._task is not None:
            self._task.cancel()
        self._task = self._host.in_background(self._try())

    async def _try(self) -> None:
        until = time.monotonic() + TRY_SECONDS
        while time.monotonic() < until:
            await asyncio.sleep(PAUSE_SECONDS)
            try:
                await self._host.ask_agent(self._set)
            except libvirt.libvirtError as error:
                if error.get_error_code() in _FINAL:
                    logger.info("the guest's clock cannot be set: %s", error.get_error_message())
                    return
            except Exception as error:
                logger.info("the guest's clock cannot be set: %s", error)
                return
            else:
                logger.info("set the guest's clock")
                return
        logger.warning("the guest's clock was not set: its agent did not answer")

    def _set(self) -> None:
        seconds, nanoseconds = divmod(time.time_ns(), 1_000_000_000)
        self._host.domain().setTime({"seconds": seconds, "nseconds": nanoseconds}, 0)
