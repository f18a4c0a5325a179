"""The servers on their sockets: one an interface and family, in the event loop of the launcher."""

from __future__ import annotations

import asyncio
import logging
import socket
import struct
from collections.abc import Callable
from typing import Any, cast

from kvnode.net.dhcp.errors import DhcpError

logger = logging.getLogger("kvnode.net.dhcp")

PORT4, PORT6 = 67, 547
_ANY4, _BROADCAST4 = "0.0.0.0", "255.255.255.255"  # noqa: S104 - what a client without an address has
_ALL_SERVERS6 = "ff02::1:2"

#: From a request to its answer; None: none is given.
Answer = Callable[[bytes], bytes | None]
#: The answer to a DHCPv4 request, and whether the client wants it broadcast.
Answer4 = Callable[[bytes], tuple[bytes, bool] | None]


class _Server(asyncio.DatagramProtocol):
    """Answers datagrams. A request that cannot be answered is logged, and the server goes on."""

    def __init__(self, interface: str) -> None:
        self._interface = interface
        self._transport: asyncio.DatagramTransport | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        # asyncio's own transport for datagrams is no subclass of the class that stands for it.
        self._transport = cast(asyncio.DatagramTransport, transport)

    def error_received(self, error: Exception) -> None:
        logger.warning("DHCP on %s: %s", self._interface, error)

    def _send(self, data: bytes, address: tuple[Any, ...]) -> None:
        if self._transport is not None:
            self._transport.sendto(data, address)


class _Server4(_Server):
    def __init__(self, interface: str, answer: Answer4) -> None:
        super().__init__(interface)
        self._answer = answer

    def datagram_received(self, data: bytes, address: tuple[Any, ...]) -> None:
        found = self._answer(data)
        if found is None:
            return
        reply, broadcast = found
        host, port = address
        self._send(reply, (_BROADCAST4 if broadcast or host == _ANY4 else host, port))


class _Server6(_Server):
    def __init__(self, interface: str, answer: Answer) -> None:
        super().__init__(interface)
        self._answer = answer

    def datagram_received(self, data: bytes, address: tuple[Any, ...]) -> None:
        reply = self._answer(data)
        if reply is not None:
            self._send(reply, address)


async def serve4(interface: str, answer: Answer4) -> asyncio.DatagramTransport:
    """Answer DHCPv4 requests that arrive at ``interface``, until the transport is closed.

    Raises DhcpError when the socket cannot be opened.
    """
    try:
        listener = _bound(interface, socket.AF_INET)
        try:
            listener.setsockopt(socket.SOL_SOCKET, socket.SO_BROADCAST, 1)
            listener.bind(("", PORT4))
        except OSError:
            listener.close()
            raise
    except OSError as error:
        raise DhcpError(f"no DHCP server on {interface}: {_reason(error)}") from None
    return await _started(listener, _Server4(interface, answer))


async def serve6(interface: str, answer: Answer) -> asyncio.DatagramTransport:
    """Answer DHCPv6 messages that arrive at ``interface``, as :func:`serve4` does."""
    try:
        index = socket.if_nametoindex(interface)
        listener = _bound(interface, socket.AF_INET6)
        try:
            listener.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
            listener.bind(("::", PORT6))
            group = socket.inet_pton(socket.AF_INET6, _ALL_SERVERS6) + struct.pack("@I", index)
            listener.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_JOIN_GROUP, group)
        except OSError:
            listener.close()
            raise
    except OSError as error:
        raise DhcpError(f"no DHCPv6 server on {interface}: {_reason(error)}") from None
    return await _started(listener, _Server6(interface, answer))


def _bound(interface: str, family: int) -> socket.socket:
    """Return a datagram socket that sends and receives on ``interface`` alone; raises OSError.

    Several may share a port, each on its interface.
    """
    opened = socket.socket(family, socket.SOCK_DGRAM | socket.SOCK_NONBLOCK | socket.SOCK_CLOEXEC)
    try:
        opened.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        opened.setsockopt(socket.SOL_SOCKET, socket.SO_BINDTODEVICE, interface.encode() + b"\0")
    except OSError:
        opened.close()
        raise
    return opened


def _reason(error: OSError) -> str:
    if isinstance(error, PermissionError):
        return "not permitted (NET_BIND_SERVICE is needed, before Linux 5.7 NET_RAW too)"
    return error.strerror or str(error)


async def _started(listener: socket.socket, server: _Server) -> asyncio.DatagramTransport:
    loop = asyncio.get_running_loop()
    transport, _ = await loop.create_datagram_endpoint(lambda: server, sock=listener)
    return transport
