"""Freezing a guest's file systems, for a snapshot of its disks
(``pkg/virt-launcher/virtwrap/storage/fsfreeze.go``).
"""

from __future__ import annotations

import asyncio

import libvirt

from kvnode.launcher import paths
from kvnode.launcher.log import logger
from kvnode.launcher.manager.errors import NoDomainError, is_not_found
from kvnode.launcher.manager.guest_agent import GuestAgent
from kvnode.launcher.manager.host import Host
from kvnode.launcher.manager.instance import Instance
from kvnode.launcher.manager.steps import sync_files

FROZEN, THAWED = "frozen", "thawed"
_TPM = "/var/lib/libvirt/swtpm"
#: Times that a guest nobody thawed is tried to be thawed, and seconds from one to the next.
TRIES, PAUSE_SECONDS = 60, 5.0


class Freezer:
    """Freezes and thaws, and thaws by itself when nobody does."""

    def __init__(self, host: Host, agent: GuestAgent) -> None:
        """Act on the domain of ``host``."""
        self._host = host
        self._agent = agent
        self._thawing: asyncio.Task[None] | None = None

    async def freeze(self, vmi: Instance, seconds: int) -> None:
        """Freeze, unless it is frozen already; thaw after ``seconds``, unless that is 0."""
        if await self._status() == FROZEN:
            return
        tpm = vmi.devices.get("tpm") or {}
        if tpm.get("persistent") and tpm.get("enabled", True):
            # The TPM's state is no file system of the guest's.
            await self._host.call(sync_files, self._tpm_directory())
        try:
            await self._host.ask_agent(lambda: self._host.domain().fsFreeze(None, 0))
        finally:  # the guest may well be frozen although libvirt's daemon died over it
            self._cancel()
            if seconds > 0:
                self._thawing = self._host.in_background(self._thaw_later(seconds))
        logger.info("froze the guest's file systems")

    async def thaw(self) -> None:
        """Thaw, unless that is known to be needless: a thaw runs the guest's hooks."""
        self._cancel()
        await self._thaw()

    async def _thaw(self) -> None:
        try:
            if await self._status() == THAWED:
                return
        except Exception as error:
            logger.info("thawing without knowing the state: %s", error)
        await self._host.ask_agent(lambda: self._host.domain().fsThaw(None, 0))
        logger.info("thawed the guest's file systems")

    async def _thaw_later(self, seconds: int) -> None:
        await asyncio.sleep(seconds)
        logger.warning("nobody thawed the guest's file systems for %d s; thawing", seconds)
        for _ in range(TRIES):
            try:
                await self._thaw()
            except Exception as error:  # libvirt's daemon is away, or the agent busy
                if _is_off(error):
                    return
                logger.warning("the guest's file systems cannot be thawed: %s", error)
                await asyncio.sleep(PAUSE_SECONDS)
            else:
                return

    def _cancel(self) -> None:
        if self._thawing is not None:
            self._thawing.cancel()
            self._thawing = None

    async def _status(self) -> str:
        return str(await self._agent.ask("guest-fsfreeze-status"))

    def _tpm_directory(self) -> str:
        return str(paths.PRIVATE / "libvirt/qemu/swtpm") if self._host.options.nonroot else _TPM


def _is_off(error: Exception) -> bool:
    """Whether there is no guest any more, nor anything to thaw."""
    if isinstance(error, libvirt.libvirtError):
        return is_not_found(error) or error.get_error_code() == libvirt.VIR_ERR_OPERATION_INVALID
    return isinstance(error, NoDomainError)
