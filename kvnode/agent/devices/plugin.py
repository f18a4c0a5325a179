"""One kind of device as kubelet's device manager sees it (``pkg/virt-handler/device-manager/generic_device.go``)."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from kvnode.agent.errors import FAILURES
from kvnode.rpc import deviceplugin_v1beta1_pb2 as api
from kvnode.rpc.client import Channel
from kvnode.rpc.server import Server
from kvnode.rpc.service import Handler, Service

logger = logging.getLogger(__name__)

REGISTRATION = Service.of(api.DESCRIPTOR, "Registration")
DEVICE_PLUGIN = Service.of(api.DESCRIPTOR, "DevicePlugin")

VERSION = "v1beta1"
KUBELET = "kubelet.sock"
NAMESPACE = "devices.kubevirt.io"
HEALTHY, UNHEALTHY = "Healthy", "Unhealthy"
PAUSES = (1.0, 2.0, 5.0, 10.0)
"""Seconds until a plugin that ended is started again."""
LOOK = 1.0
"""Seconds between looks at the device, and at kubelet's socket."""
_REGISTER = 5.0


@dataclass(frozen=True, slots=True)
class Kind:
    """A device that many pods may have at once: each gets the same node."""

    name: str
    path: str
    """Of the node, and in pods."""
    loads_module: bool = False
    """Whether opening it once makes the kernel load what is behind it."""

    @property
    def resource(self) -> str:
        """What pods ask for."""
        return f"{NAMESPACE}/{self.name}"


PERMANENT = (
    Kind("kvm", "/dev/kvm"),
    Kind("tun", "/dev/net/tun", loads_module=True),
    Kind("vhost-net", "/dev/vhost-net", loads_module=True),
)
"""Those that every node offers."""


def permissions(cgroups: Path = Path("/sys/fs/cgroup")) -> str:
    """What a pod may do with a device: version 2 of cgroups knows no node without the right to make it."""
    return "rwm" if (cgroups / "cgroup.controllers").exists() else "rw"


class Plugin:
    """Offers one kind."""

    def __init__(self, kind: Kind, folder: Path, devices: Path, count: int) -> None:
        """`folder` is kubelet's for plugins, `devices` the node's ``/dev``, `count` how many pods may have one."""
        self.kind = kind
        self.initialised = False
        """Whether kubelet was told of it once."""
        self._folder = folder
        self._device = devices / kind.path.removeprefix("/dev/")
        self._ids = [f"{kind.name}{number}" for number in range(count)]
        self._permissions = permissions()
        self._healthy = False
        self._ending = False
        self._changed = asyncio.Condition()

    @property
    def socket(self) -> Path:
        """Where kubelet finds it."""
        return self._folder / f"kubevirt-{self.kind.name}.sock"

    @property
    def is_healthy(self) -> bool:
        """Whether the device is there."""
        return self._healthy

    async def run(self) -> None:
        """Offer it until cancelled, again whenever kubelet has started anew."""
        tries = 0
        while True:
            try:
                await self._serve()
                tries = 0
            except FAILURES as error:
                logger.warning("device %s: cannot be offered now: %s", self.kind.resource, error)
                await asyncio.sleep(PAUSES[min(tries, len(PAUSES) - 1)])
                tries += 1

    async def _serve(self) -> None:
        """Serve and register; return when kubelet has started anew. Raises one of `errors.FAILURES`."""
        if self.kind.loads_module:
            with contextlib.suppress(OSError):
                os.close(os.open(self._device, os.O_RDWR | os.O_NONBLOCK | os.O_CLOEXEC))
        self._healthy, self._ending = self._device.exists(), False
        server = Server(self.socket, (DEVICE_PLUGIN.bind(self._handlers()),))
        await server.start()
        mark = _identity(self.socket)
        try:
            kubelet = _identity(self._folder / KUBELET)
            await self._register()
            self.initialised = True
            logger.info("device %s: offered to kubelet", self.kind.resource)
            while _identity(self.socket) == mark and _identity(self._folder / KUBELET) == kubelet:
                await asyncio.sleep(LOOK)
                await self._look()
            logger.info("device %s: kubelet has started anew", self.kind.resource)
        finally:
            await self._end(server, is_ours=_identity(self.socket) == mark)

    async def _register(self) -> None:
        channel = Channel(self._folder / KUBELET)
        try:
            await channel.connect()
            options = api.DevicePluginOptions()
            request = api.RegisterRequest(
                version=VERSION,
                endpoint=self.socket.name,
                resource_name=self.kind.resource,
                options=options,
            )
            await channel.call(REGISTRATION, "Register", request, api.Empty, _REGISTER)
        finally:
            await channel.close()

    async def _look(self) -> None:
        healthy = self._device.exists()
        if healthy != self._healthy:
            logger.warning("device %s: is %s", self.kind.path, "there again" if healthy else "gone")
            async with self._changed:
                self._healthy = healthy
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
        while True:
            healthy, ending = self._healthy, self._ending
            yield self._listed([] if ending else self._ids, healthy=healthy)
            if ending:
                return
            async with self._changed:
                await self._changed.wait_for(lambda: (self._healthy, self._ending) != (healthy, ending))  # noqa: B023

    @staticmethod
    def _listed(ids: Sequence[str], *, healthy: bool) -> api.ListAndWatchResponse:
        health = HEALTHY if healthy else UNHEALTHY
        return api.ListAndWatchResponse(devices=[api.Device(ID=one, health=health) for one in ids])

    async def _allocate(self, request: api.AllocateRequest, _context: object) -> api.AllocateResponse:
        path = self.kind.path
        device = api.DeviceSpec(host_path=path, container_path=path, permissions=self._permissions)
        answer = api.ContainerAllocateResponse(devices=[device])
        return api.AllocateResponse(container_responses=[answer for _ in request.container_requests])

    async def _pre_start(self, _request: object, _context: object) -> api.PreStartContainerResponse:
        return api.PreStartContainerResponse()

    async def _preferred(self, _request: object, _context: object) -> api.PreferredAllocationResponse:
        return api.PreferredAllocationResponse()


class Plugins:
    """All that the node offers."""

    def __init__(self, folder: Path, devices: Path, count: int, kinds: Sequence[Kind] = PERMANENT) -> None:
        """See `Plugin`."""
        self.all = [Plugin(kind, folder, devices, count) for kind in kinds]

    @property
    def initialised(self) -> bool:
        """Whether kubelet was told of each."""
        return all(plugin.initialised for plugin in self.all)

    async def run(self) -> None:
        """Offer all until cancelled."""
        async with asyncio.TaskGroup() as group:
            for plugin in self.all:
                group.create_task(plugin.run())


def _identity(path: Path) -> tuple[int, int] | None:
    """What tells a file from another of its name."""
    try:
        found = path.lstat()
    except OSError:
        return None
    return found.st_ino, found.st_ctime_ns
