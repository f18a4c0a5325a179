"""All device plugins of a node: those that stay, and those that come and go with the configuration."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Mapping, Sequence
from pathlib import Path

from kvnode.agent.devices.offer import PERMANENT, Host, Kind, Offer, SharedDevice
from kvnode.agent.devices.permitted import permitted_offers
from kvnode.agent.devices.plugin import Plugin
from kvnode.api.errors import FieldError
from kvnode.spec.config import ClusterConfig

logger = logging.getLogger(__name__)

SCAN = 60.0
"""Seconds between looks for devices that were plugged in, or handed to VFIO, meanwhile."""


class Plugins:
    """All that the node offers (``device_controller.go``)."""

    def __init__(self, folder: Path, host: Host, *, kinds: Sequence[Kind] = PERMANENT) -> None:
        """`folder` is kubelet's for plugins."""
        self.permanent = [Plugin(SharedDevice(kind, host.devices, host.count), folder) for kind in kinds]
        self.permitted: dict[str, Plugin] = {}
        """Those that the configuration asks for, by resource."""
        self._folder, self._host = folder, host
        self._tasks: dict[str, asyncio.Task[None]] = {}
        self._config = ClusterConfig()
        self._wake = asyncio.Event()

    @property
    def initialised(self) -> bool:
        """Whether kubelet was told of each permanent one.

        VMs that need another are kept away by the scheduler: one resource with a name that kubelet does not take
        must not cost all VMs the node.
        """
        return all(plugin.initialised for plugin in self.permanent)

    def configure(self, config: ClusterConfig) -> None:
        """Offer what this configuration asks for, soon."""
        self._config = config
        self._wake.set()

    async def run(self) -> None:
        """Offer all until cancelled."""
        try:
            async with asyncio.TaskGroup() as group:
                for plugin in self.permanent:
                    group.create_task(plugin.run())
                await self._follow(group)
        finally:
            self.permitted.clear()
            self._tasks.clear()

    async def _follow(self, group: asyncio.TaskGroup) -> None:
        while True:
            self._wake.clear()
            try:
                offers = await asyncio.to_thread(permitted_offers, self._config, self._host)
            except FieldError as error:
                logger.warning("host devices are left as they are: %s", error)
            else:
                await self._offer(offers, group)
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(SCAN if self._config.permitted_host_devices else None):
                    await self._wake.wait()

    async def _offer(self, offers: Mapping[str, Offer], group: asyncio.TaskGroup) -> None:
        await self._stop(*(resource for resource in self._tasks if resource not in offers))
        for resource, offer in offers.items():
            known = self.permitted.get(resource)
            if known is not None:
                # What came or went is seen at its next look; kubelet keeps its connection.
                known.offer = offer
                continue
            plugin = self.permitted[resource] = Plugin(offer, self._folder)
            self._tasks[resource] = group.create_task(plugin.run(), name=f"device {resource}")
            logger.info("device %s: is permitted, and here", resource)

    async def _stop(self, *resources: str) -> None:
        tasks = [self._tasks.pop(resource) for resource in resources]
        for resource in resources:
            del self.permitted[resource]
            logger.info("device %s: is not offered any more", resource)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
