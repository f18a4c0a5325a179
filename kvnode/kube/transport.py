"""Connections that notice when the other side is gone.

A watch may be silent for minutes and be in order, so silence says nothing. The kernel asks instead: TCP keepalive
probes an idle connection, and TCP_USER_TIMEOUT ends one whose data or probes stay without an answer.
"""

from __future__ import annotations

import socket
from collections.abc import Callable
from dataclasses import dataclass

import aiohttp

AddressInfo = tuple[int, int, int, str, tuple[str, int] | tuple[str, int, int, int] | tuple[int, bytes]]


@dataclass(frozen=True, slots=True)
class Liveness:
    """When a connection counts as dead; with these defaults 30 to 45 s after the last sign of life."""

    idle: int = 15
    """Seconds of silence before the first probe."""
    interval: int = 5
    """Seconds between probes."""
    user_timeout: int = 30
    """Seconds that anything sent may stay without an answer."""

    def apply(self, one: socket.socket) -> None:
        """Set the socket's options."""
        one.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
        one.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPIDLE, self.idle)
        one.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPINTVL, self.interval)
        one.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPCNT, max(1, self.user_timeout // self.interval))
        one.setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, self.user_timeout * 1000)


def socket_factory(liveness: Liveness) -> Callable[[AddressInfo], socket.socket]:
    """What the connector makes its sockets with."""

    def make(address: AddressInfo) -> socket.socket:
        family, kind, protocol, *_ = address
        one = socket.socket(family, kind, protocol)
        one.setblocking(False)
        liveness.apply(one)
        return one

    return make


def connector(liveness: Liveness) -> aiohttp.TCPConnector:
    """Connections without a limit of their own: every watch holds one, and workers are few."""
    return aiohttp.TCPConnector(limit=0, socket_factory=socket_factory(liveness), keepalive_timeout=60)


def abort(response: aiohttp.ClientResponse) -> None:
    """End an answer that is not read to its end, and its connection, now.

    Closing alone would wait for the other side's part in ending TLS, which may never come.
    """
    connection = response.connection
    if connection is not None and connection.transport is not None:
        connection.transport.abort()
    response.close()
