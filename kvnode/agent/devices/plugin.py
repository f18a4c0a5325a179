"""One offer as kubelet's device manager sees it: a server of its own (``device_plugin_base.go``)."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Sequence
from pathlib import Path

from kvnode.agent.devices.offer import HEALTHY, UNHEALTHY, Offer, RefusedError, Unit
from kvnode.agent.errors import FAILURES
from kvnode.rpc import deviceplugin_v1beta1_pb2 as api
from kvnode.rpc.client import Channel
from kvnode.rpc.errors import RpcError
from kvnode.rpc.server import Server
from kvnode.rpc.service import Handler, Service

logger = logging.getLogger(__name__)

REGISTRATION = Service.of(api.DESCRIPTOR, "Registration")
DEVICE_PLUGIN = Service.of(api.DESCRIPTOR, "DevicePlugin")

VERSION = "v1beta1"
KUBELET = "kubelet.sock"
PAUSES = (1.0, 2.0, 5.0, 10.0)
"""Seconds until a plugin that ended is started again."""
LOOK = 1.0
"""Seconds between looks at the devices, and at kubelet's socket."""
UNWATCHED = 10.0
"""Seconds after which a plugin that kubelet does not watch registers again.

kubelet lets go of a plugin that it has just taken when it notices only then that the one before it has ended.
"""
_REGISTER = 5.0
_Identity = tuple[int, int] | None


class Plugin:
    """Offers one resource."""

    def __init__(self, offer: Offer, folder: Path) -> None:
        """`folder` is kubelet's for plugins."""
        self.offer = offer
        """What is offered; another one of the same resource may take its place at any time."""
        self.initialised = False
        """Whether kubelet was told of it once."""
        self._folder = folder
        self._units: Sequence[Unit] = ()
        self._ending = False
        self._watchers = 0
        self._changed = asyncio.Condition()

    @property
    def socket(self) -> Path:
        """Where kubelet finds it."""
        return self._folder / self.offer.socket_name

    @property
    def is_healthy(self) -> bool:
        """Whether all of its devices are there."""
        return all(unit.healthy for unit in self._units)

    async def run(self) -> None:
        """Offer it until cancelled, again whenever kubelet has started anew."""
        tries = 0
        while True:
            try:
                await self._serve()
                tries = 0
            except (*FAILURES, ValueError) as error:
                logger.warning("device %s: cannot be offered now: %s", self.offer.resource, error)
                tries += 1
            # Never at once: kubelet must have seen the end of what was there before.
            await asyncio.sleep(PAUSES[min(max(tries - 1, 0), len(PAUSES) - 1)])

    async def _serve(self) -> None:
        """Serve and register; return when that has to be done again. Raises one of `errors.FAILURES`."""
        (self._folder / KUBELET).lstat()
        self.offer.prepare()
        self._units, self._ending = self.offer.units(), False
        server = Server(self.socket, (DEVICE_PLUGIN.bind(self._handlers()),))
        await server.start()
        mark = _identity(self.socket)
        try:
            kubelet = _identity(self._folder / KUBELET)
            await self._register()
            self.initialised = True
            logger.info("device %s: offered to kubelet", self.offer.resource)
            logger.info("device %s: %s", self.offer.resource, await self._last(mark, kubelet))
        finally:
            await self._end(server, is_ours=_identity(self.socket) == mark)

    async def _last(self, mark: _Identity, kubelet: _Identity) -> str:
        """Look after the devices as long as kubelet does; the answer is why it does not any more."""
        loop = asyncio.get_running_loop()
        watched = loop.time()
        while True:
            if _identity(self.socket) != mark:
                return "its socket was taken away"
            if _identity(self._folder / KUBELET) != kubelet:
                return "kubelet has started anew"
            if self._watchers:
                watched = loop.time()
            elif loop.time() - watched > UNWATCHED:
                return "kubelet does not watch it"
            await asyncio.sleep(LOOK)
            await self._look()

    async def _register(self) -> None:
        channel = Channel(self._folder / KUBELET)
        try:
            await channel.connect()
            options = api.DevicePluginOptions()
            request = api.RegisterRequest(
                version=VERSION,
                endpoint=self.socket.name,
                resource_name=self.offer.resource,
                options=options,
            )
            await channel.call(REGISTRATION, "Register", request, api.Empty, _REGISTER)
        finally:
            await channel.close()

    async def _look(self) -> None:
        units = self.offer.units()
        if units == self._units:
            return
        lost = [unit.id for unit in units if not unit.healthy]
        how = f"{len(lost)} gone ({', '.join(lost[:3])})" if lost else "all there"
        logger.warning("device %s: of %d now are %s", self.offer.resource, len(units), how)
        async with self._changed:
            self._units = units
            self._changed.notify_all()

    async def _end(self, server: Server, *, is_ours: bool) -> None:
        async with self._changed:
            self._ending = True
            self._changed.notify_all()
        if not is_ours:
            # A socket of that name is another's by now, or there is none.
            server.socket = server.socket.with_name(f".{server.socket.name}.gone")
        await server.stop(1.0)

    # ---- what kubelet asks

    def _handlers(self) -> dict[str, Handler]:
        return {
            "GetDevicePluginOptions": self._options,
            "ListAndWatch": self._list_and_watch,
            "Allocate": self._allocate,
            "PreStartContainer": self._pre_start,
            "GetPreferredAllocation": self._preferred,
        }

    async def _options(self, _request: object, _context: object) -> api.DevicePluginOptions:
        return api.DevicePluginOptions()

    async def _list_and_watch(
        self, _request: object, _context: object
    ) -> AsyncIterator[api.ListAndWatchResponse]:
        self._watchers += 1
        try:
            while True:
                units, ending = self._units, self._ending
                yield _listed(() if ending else units)
                if ending:
                    return
                async with self._changed:
                    await self._changed.wait_for(lambda: (self._units, self._ending) != (units, ending))  # noqa: B023
        finally:
            self._watchers -= 1

    async def _allocate(self, request: api.AllocateRequest, _context: object) -> api.AllocateResponse:
        try:
            answers = [self.offer.allocate(list(one.devices_ids)) for one in request.container_requests]
        except RefusedError as error:
            logger.warning("device %s: a container cannot have it: %s", self.offer.resource, error)
            raise RpcError("Allocate", f"{self.offer.resource}: {error}", "FAILED_PRECONDITION") from None
        return api.AllocateResponse(container_responses=answers)

    async def _pre_start(self, _request: object, _context: object) -> api.PreStartContainerResponse:
        return api.PreStartContainerResponse()

    async def _preferred(self, _request: object, _context: object) -> api.PreferredAllocationResponse:
        return api.PreferredAllocationResponse()


def _listed(units: Sequence[Unit]) -> api.ListAndWatchResponse:
    return api.ListAndWatchResponse(devices=[_device(unit) for unit in units])


def _device(unit: Unit) -> api.Device:
    health = HEALTHY if unit.healthy else UNHEALTHY
    if unit.numa_node is None:
        return api.Device(ID=unit.id, health=health)
    near = api.TopologyInfo(nodes=[api.NUMANode(ID=unit.numa_node)])
    return api.Device(ID=unit.id, health=health, topology=near)


def _identity(path: Path) -> _Identity:
    """What tells a file from another of its name."""
    try:
        found = path.lstat()
    except OSError:
        return None
    return found.st_ino, found.st_ctime_ns
