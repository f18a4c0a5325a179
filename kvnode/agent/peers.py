"""Who listens at a launcher's socket, by the kernel's word (SO_PEERCRED, unix(7)).

``pkg/virt-handler/isolation/detector.go:69-121``
"""

from __future__ import annotations

import asyncio
import errno
import os
import socket
import struct
from dataclasses import dataclass
from pathlib import Path

from kvnode.agent.errors import AgentError

CONNECT_SECONDS = 2.0
_SO_PEERPIDFD = 77
_CREDENTIALS = struct.Struct("=iII")
_FRAME_HEAD, _SETTINGS = 9, 4
_OPENING = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + bytes([0, 0, 0, _SETTINGS, 0, 0, 0, 0, 0])
"""Preface and empty settings."""


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


async def greets(path: Path, timeout: float = CONNECT_SECONDS) -> bool:
    """Whether whoever listens at a socket answers the opening of HTTP/2 (RFC 9113, 3.4), as gRPC's servers do.

    That is what a connection of gRPC's begins with, for a tenth of what a call costs.
    """
    loop = asyncio.get_running_loop()
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM | socket.SOCK_NONBLOCK) as connection:
        try:
            async with asyncio.timeout(timeout):
                await loop.sock_connect(connection, str(path))
                await loop.sock_sendall(connection, _OPENING)
                answer = await loop.sock_recv(connection, _FRAME_HEAD)
        except (OSError, TimeoutError):
            return False
    return len(answer) == _FRAME_HEAD and answer[3] == _SETTINGS


async def peer_of(path: Path, timeout: float = CONNECT_SECONDS, *, shown: Path | None = None) -> Peer:
    """The process that listens at a socket, which errors call ``shown``.

    Raises:
        AgentError: nobody does, it is of another PID namespace, or the process that began to listen has ended.
    """
    loop = asyncio.get_running_loop()
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM | socket.SOCK_NONBLOCK) as connection:
        try:
            async with asyncio.timeout(timeout):
                await loop.sock_connect(connection, str(path))
            raw = connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _CREDENTIALS.size)
            lives = _lives(connection)
        except (OSError, TimeoutError) as error:
            reason = getattr(error, "strerror", None) or f"no answer within {timeout:g} s"
            raise AgentError(f"{shown or path}: nobody listens: {reason}") from error
    peer = Peer(*_CREDENTIALS.unpack(raw))
    if peer.pid <= 0:
        raise AgentError(
            f"{shown or path}: who listens is not in sight: the agent must see the host's processes (hostPID)"
        )
    if not lives:
        raise AgentError(f"{shown or path}: the process that began to listen (PID {peer.pid}) has ended")
    return peer


def _lives(connection: socket.socket) -> bool:
    """Whether the process lives that began to listen: else its PID may be another's, who has nothing to do with it.

    A kernel older than 6.5 cannot tell, and is believed.
    """
    try:
        process = connection.getsockopt(socket.SOL_SOCKET, _SO_PEERPIDFD)
    except OSError as error:
        return error.errno in (errno.ENOPROTOOPT, errno.ENOSYS)
    try:
        lines = Path(f"/proc/self/fdinfo/{process}").read_text().splitlines()
    finally:
        os.close(process)
    # -1 of one that has ended (pidfd_open(2)).
    return not any(line.startswith("Pid:") and line.split()[1] == "-1" for line in lines)
