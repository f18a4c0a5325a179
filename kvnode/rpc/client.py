"""A connection to a unix socket, and calls over it."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path
from types import TracebackType
from typing import Any, Self, TypeVar

from google.protobuf.message import Message

from kvnode.rpc.errors import RpcError
from kvnode.rpc.runtime import grpc
from kvnode.rpc.service import Service

Answer = TypeVar("Answer", bound=Message)

#: Seconds that a socket may take to be answered first (``pkg/util/net/grpc``).
CONNECT_SECONDS = 2.0

#: Longest path of a unix socket (unix(7): 108 bytes with the NUL).
MAX_SOCKET_PATH = 107


def target_of(socket: Path) -> str:
    """The address of a unix socket for gRPC.

    Raises:
        ValueError: the path is longer than the kernel takes.
    """
    length = len(os.fsencode(socket.absolute()))
    if length > MAX_SOCKET_PATH:
        raise ValueError(
            f"{socket}: a unix socket's path has at most {MAX_SOCKET_PATH} bytes, this has {length}"
        )
    return f"unix:{socket.absolute()}"


class Channel:
    """One long-lived connection. It is made and used in one event loop."""

    def __init__(self, socket: Path, shown: Path | None = None) -> None:
        """Prepare a connection to ``socket``, which errors call ``shown``. Nothing is opened yet."""
        self.socket = shown or socket
        # Go's server refuses the socket's path, which would be the default, as an authority.
        options = [
            ("grpc.default_authority", "localhost"),
            ("grpc.enable_http_proxy", 0),
            # Else channels to one path share a connection, though another socket may be there now.
            ("grpc.use_local_subchannel_pool", 1),
        ]
        self._channel = grpc.aio.insecure_channel(target_of(socket), options=options)
        self._calls: dict[str, grpc.aio.UnaryUnaryMultiCallable[Any, Any]] = {}

    async def connect(self, timeout: float = CONNECT_SECONDS) -> None:
        """Wait until the other side answers.

        Raises:
            RpcError: nothing answered within ``timeout`` seconds.
        """
        try:
            async with asyncio.timeout(timeout):
                await self._channel.channel_ready()
        except TimeoutError:
            raise RpcError(
                "connect", f"nothing answers on {self.socket} after {timeout:g} s", "UNAVAILABLE"
            ) from None

    async def call(
        self, service: Service, name: str, request: Message, answer: type[Answer], timeout: float
    ) -> Answer:
        """Call one unary method and return its answer, of the class ``answer``.

        Raises:
            RpcError: the call failed, or took longer than ``timeout`` seconds (``DEADLINE_EXCEEDED``).
        """
        method = service.methods[name]
        if not isinstance(request, method.request) or answer is not method.response:
            raise TypeError(
                f"{method.path} takes {method.request.__name__} and gives {method.response.__name__}"
            )
        call = self._calls.get(method.path)
        if call is None:
            call = self._calls[method.path] = self._channel.unary_unary(
                method.path,
                request_serializer=method.request.SerializeToString,
                response_deserializer=method.response.FromString,
            )
        try:
            response = await call(request, timeout=timeout)
        except grpc.aio.AioRpcError as error:
            raise RpcError(name, error.details() or "", error.code().name) from None
        except grpc.aio.UsageError:
            raise RpcError(name, f"the connection to {self.socket} is closed", "CANCELLED") from None
        if not isinstance(response, answer):
            raise RpcError(name, "the answer cannot be read", "INTERNAL")
        return response

    async def close(self) -> None:
        """Close the connection; calls under way end as CANCELLED."""
        await self._channel.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()
