"""Who listens at a launcher's socket, by the kernel's word (SO_PEERCRED, unix(7)).

``pkg/virt-handler/isolation/detector.go:69-121``
"""

from __future__ import annotations

import asyncio
import socket
import struct
from dataclasses import dataclass
from pathlib import Path

from kvnode.agent.errors import AgentError

CONNECT_SECONDS = 2.0
_CREDENTIALS = struct.Struct("=iII")


@dataclass(frozen=True, slots=True)
class Peer:
    """A process, as this process' PID namespace numbers it, and the user that it ran as when it began to listen."""

    pid: int
    uid: int
    gid: int

    @property
    def root(self) -> Path:
        """Its root file system."""
        return Path(f"/proc/{self.pid}/root")


async def peer_of(path: Path, timeout: float = CONNECT_SECONDS) -> Peer:
    """The process that listens at a socket.

    Raises:
        AgentError: nobody does, or it is of another PID namespace.
    """
    loop = asyncio.get_running_loop()
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM | socket.SOCK_NONBLOCK) as connection:
        try:
            async with asyncio.timeout(timeout):
                await loop.sock_connect(connection, str(path))
            raw = connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _CREDENTIALS.size)
        except (OSError, TimeoutError) as error:
            reason = getattr(error, "strerror", None) or f"no answer within {timeout:g} s"
            raise AgentError(f"{path}: nobody listens: {reason}") from error
    peer = Peer(*_CREDENTIALS.unpack(raw))
    if peer.pid <= 0:
        raise AgentError(
            f"{path}: who listens is not in sight: the agent must see the host's processes (hostPID)"
        )
    return peer
