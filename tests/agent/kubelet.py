"""kubelet's device manager, as far as plugins meet it."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

from kvnode.agent.devices.plugin import DEVICE_PLUGIN, KUBELET, REGISTRATION
from kvnode.rpc import deviceplugin_v1beta1_pb2 as api
from kvnode.rpc.client import Channel, target_of
from kvnode.rpc.runtime import grpc
from kvnode.rpc.server import Server


class Kubelet:
    """Takes registrations in a folder of plugins, and asks whoever registered."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.registered: dict[str, str] = {}
        self.versions: set[str] = set()
        self._server: Server | None = None

    async def start(self) -> None:
        """Start as kubelet does: what other plugins left in the folder goes."""
        for path in self.folder.glob("*") if self.folder.exists() else ():
            path.unlink()
        self.registered.clear()
        self._server = Server(self.folder / KUBELET, (REGISTRATION.bind({"Register": self._register}),))
        await self._server.start()

    async def stop(self) -> None:
        """End; a kubelet leaves its socket, which its next start replaces."""
        if self._server is not None:
            await self._server.stop(0)

    async def _register(self, request: Any, _context: object) -> api.Empty:
        self.registered[request.resource_name] = request.endpoint
        self.versions.add(request.version)
        return api.Empty()

    async def until(self, resource: str) -> Path:
        """The plugin's socket, once it has registered."""
        async with asyncio.timeout(60):
            while resource not in self.registered:
                await asyncio.sleep(0.02)
        return self.folder / self.registered[resource]

    async def allocate(self, socket: Path, *containers: list[str]) -> list[api.ContainerAllocateResponse]:
        """Ask for devices."""
        asked = [api.ContainerAllocateRequest(devices_ids=ids) for ids in containers]
        request = api.AllocateRequest(container_requests=asked)
        channel = Channel(socket)
        try:
            answer = await channel.call(DEVICE_PLUGIN, "Allocate", request, api.AllocateResponse, 60)
        finally:
            await channel.close()
        return list(answer.container_responses)


class Watch:
    """kubelet's watch over a plugin's devices."""

    def __init__(self, socket: Path) -> None:
        options = [("grpc.default_authority", "localhost")]
        self._channel = grpc.aio.insecure_channel(target_of(socket), options=options)
        method = DEVICE_PLUGIN.methods["ListAndWatch"]
        stream = self._channel.unary_stream(
            method.path,
            request_serializer=api.Empty.SerializeToString,
            response_deserializer=api.ListAndWatchResponse.FromString,
        )
        self._call = stream(api.Empty())
        self.numa_nodes: dict[str, int] = {}
        """Those of the devices that were told of last, by identifier."""

    async def next(self) -> list[tuple[str, str]]:
        """The next list: identifiers and health."""
        async with asyncio.timeout(60):
            answer: Any = await self._call.read()
        self.numa_nodes = {one.ID: near.ID for one in answer.devices for near in one.topology.nodes}
        return [(one.ID, one.health) for one in answer.devices]

    async def close(self) -> None:
        """End the watch."""
        self._call.cancel()
        await self._channel.close()
