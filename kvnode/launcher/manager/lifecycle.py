"""Pause, resume, reset, reboot, shut down, end and forget the guest
(``pkg/virt-launcher/virtwrap/manager.go:1989``).
"""

from __future__ import annotations

import asyncio
import time
import xml.etree.ElementTree as ET

import libvirt

from kvnode.launcher.log import logger
from kvnode.launcher.manager.errors import ManagerError, is_not_found
from kvnode.launcher.manager.guest_time import GuestTime
from kvnode.launcher.manager.host import Host
from kvnode.launcher.manager.instance import Instance
from kvnode.launcher.manager.metadata import now
from kvnode.launcher.manager.xml import parse

#: Seconds between presses of the power button: an operating system that boots does not hear the first.
PRESS_SECONDS = 5.0

_ALIVE = (libvirt.VIR_DOMAIN_RUNNING, libvirt.VIR_DOMAIN_PAUSED)
_KILLABLE = (*_ALIVE, libvirt.VIR_DOMAIN_SHUTDOWN)
_UNDEFINE = libvirt.VIR_DOMAIN_UNDEFINE_KEEP_NVRAM | libvirt.VIR_DOMAIN_UNDEFINE_CHECKPOINTS_METADATA


class Lifecycle:
    """What happens to a guest as a whole."""

    def __init__(self, host: Host) -> None:
        """Act on the domain of ``host``."""
        self._host = host
        self._time = GuestTime(host)
        self._pressing: asyncio.Task[None] | None = None
        self.deleted = False
        """The domain was undefined after it had run: this launcher's work is done. One that never came to run is
        deleted by agents too (``pkg/virt-handler/vm.go:1519``), and then defined and started anew.
        """

    async def pause(self, vmi: Instance) -> None:
        """Suspend the guest if it runs; it stays so until it is resumed by request."""

        def suspend() -> bool:
            domain = self._host.domain()
            if domain.state()[0] != libvirt.VIR_DOMAIN_RUNNING:
                return False
            domain.suspend()
            return True

        if await self._host.call(suspend):
            self._host.paused.add(vmi.uid)
            logger.info("paused")

    async def unpause(self, vmi: Instance) -> None:
        """Resume the guest if it is paused, and set its clock right."""

        def resume() -> bool:
            domain = self._host.domain()
            if domain.state()[0] != libvirt.VIR_DOMAIN_PAUSED:
                return False
            domain.resume()
            return True

        if await self._host.call(resume):
            self._host.paused.discard(vmi.uid)
            self._time.set_soon()
            logger.info("resumed")

    async def reset(self) -> None:
        """Press the reset button."""
        await self._host.call(lambda: self._host.domain().reset(0))

    async def soft_reboot(self, vmi: Instance) -> None:
        """Ask the guest to reboot: by its agent where one is connected, else by ACPI."""
        if vmi.condition("AgentConnected"):
            flags = libvirt.VIR_DOMAIN_REBOOT_GUEST_AGENT
        else:
            acpi = (vmi.domain.get("features") or {}).get("acpi") or {}
            if acpi.get("enabled") is False:
                raise ManagerError(
                    "the guest has neither a connected agent nor ACPI to be asked to reboot by"
                )
            flags = libvirt.VIR_DOMAIN_REBOOT_ACPI_POWER_BTN

        def reboot() -> None:
            try:
                self._host.domain().reboot(flags)
            except libvirt.libvirtError as error:
                # It answers no more because it reboots.
                if error.get_error_code() != libvirt.VIR_ERR_AGENT_UNRESPONSIVE:
                    raise

        await self._host.call(reboot)

    async def shutdown(self, vmi: Instance) -> None:
        """Ask the guest to shut down, and again every five seconds until its grace period is over.

        By the ACPI power button where the guest has one: to wait for an agent that does not answer would
        cost the whole grace period.
        """
        if not await self._host.call(self._press):
            return
        section = self._host.metadata.section("GracePeriod") or {}
        if section.get("DeletionTimestamp") is None:
            self._host.metadata.update("GracePeriod", DeletionTimestamp=now())
        logger.info("asked the guest to shut down")
        if self._pressing is None or self._pressing.done():
            self._pressing = self._host.in_background(self._press_again(vmi.grace_seconds))

    def _press(self) -> bool:
        """Press the power button; False when there is no guest to hear it. Blocks."""
        domain = self._host.lookup()
        if domain is None:
            return False
        try:
            if domain.state()[0] not in _ALIVE:
                return False
            domain.shutdownFlags(_shutdown_flags(parse(domain.XMLDesc(0))))
        except libvirt.libvirtError as error:
            if is_not_found(error) or error.get_error_code() == libvirt.VIR_ERR_OPERATION_INVALID:
                return False  # it ended meanwhile
            raise
        return True

    async def _press_again(self, grace: float) -> None:
        until = time.monotonic() + grace
        while (left := until - time.monotonic()) > 0:
            await asyncio.sleep(min(PRESS_SECONDS, left))
            try:
                if not await self._host.call(self._press):
                    return
            except Exception as error:  # its daemon is away, say: the next time it may be back
                logger.warning("the guest cannot be asked to shut down again: %s", error)

    async def kill(self) -> None:
        """End QEMU: SIGTERM, and SIGKILL when that was not enough. One that ended is left alone."""

        def destroy() -> None:
            domain = self._host.lookup()
            if domain is None:
                return
            try:
                if domain.state()[0] in _KILLABLE:
                    _destroy(domain)
            except libvirt.libvirtError as error:
                if not is_not_found(error):
                    raise

        await self._host.call(destroy)

    async def delete(self) -> None:
        """Undefine the domain; its EFI variables stay. None is fine."""

        def undefine() -> bool:
            domain = self._host.lookup()
            if domain is None:
                return False
            domain.undefineFlags(_UNDEFINE)
            return True

        if await self._host.call(undefine):
            self.deleted = self._host.has_run()
            logger.info("undefined the domain")


def _destroy(domain: libvirt.virDomain) -> None:
    try:
        domain.destroyFlags(libvirt.VIR_DOMAIN_DESTROY_GRACEFUL)
    except libvirt.libvirtError as error:
        if is_not_found(error) or not domain.isActive():
            return
        logger.warning("QEMU does not end by itself: %s", error.get_error_message())
        domain.destroyFlags(libvirt.VIR_DOMAIN_DESTROY_DEFAULT)


def _shutdown_flags(domain: ET.Element) -> int:
    """How to ask: the power button where the guest has ACPI; else libvirt chooses."""
    if domain.find("features/acpi") is not None:
        return int(libvirt.VIR_DOMAIN_SHUTDOWN_ACPI_POWER_BTN)
    return int(libvirt.VIR_DOMAIN_SHUTDOWN_DEFAULT)
