"""Who listens at a launcher's socket, by the kernel's word (SO_PEERCRED, unix(7)).

``pkg/virt-handler/isolation/detector.go:69-121``
"""

from __future__ import annotations

import asyncio
import errno
import os
import socket
import struct
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from kvnode.agent.errors import AgentError
from kvnode.agent.processes import Held

CONNECT_SECONDS = 2.0
_SO_PEERPIDFD = 77
_CREDENTIALS = struct.Struct("=iII")
_FRAME_HEAD, _SETTINGS = 9, 4
_OPENING = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + bytes([0, 0, 0, _SETTINGS, 0, 0, 0, 0, 0])
"""Preface and empty settings."""
_LOOK = 0.02
"""Seconds until answers are looked for first; doubled each time."""


@dataclass(frozen=True, slots=True)
class Peer:
    """A process, as this process' PID namespace numbers it, and the user that it ran as when it began to listen."""

    pid: int
    uid: int
    gid: int
    held: Held

    @property
    def proc(self) -> Path:
        """Its folder in /proc, good as long as this object is kept."""
        return self.held.path

    @property
    def root(self) -> Path:
        """Its root file system, likewise."""
        return self.proc / "root"


async def greet(paths: Iterable[Path], timeout: float = CONNECT_SECONDS) -> list[bool]:
    """Whether those who listen at these sockets answer the opening of HTTP/2 (RFC 9113, 3.4), as gRPC's servers do.

    That is what a connection of gRPC's begins with, for a small part of what a call costs; many at once cost this
    process little more than one, as it need wake but once for all of their answers. Raises OSError when this process
    can open no more files.
    """
    loop = asyncio.get_running_loop()
    deadline = loop.time() + timeout
    answered: list[bool] = []
    waiting: dict[int, socket.socket] = {}
    pause = _LOOK
    try:
        for number, path in enumerate(paths):
            answered.append(False)
            if (connection := _open(path)) is not None:
                waiting[number] = connection
        while waiting and loop.time() < deadline:
            await asyncio.sleep(min(pause, deadline - loop.time()))
            pause *= 2
            for number, connection in list(waiting.items()):
                if (answer := _answer(connection)) is not None:
                    answered[number] = answer
                    waiting.pop(number).close()
    finally:
        for connection in waiting.values():
            connection.close()
    return answered


def _open(path: Path) -> socket.socket | None:
    """A connection on which the opening is sent; None when nobody takes it."""
    connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM | socket.SOCK_NONBLOCK)
    try:
        connection.connect(str(path))
        connection.send(_OPENING)
    except OSError:
        connection.close()
        return None
    return connection


def _answer(connection: socket.socket) -> bool | None:
    """Whether what came is an answer to the opening; None while nothing has come."""
    try:
        answer = connection.recv(_FRAME_HEAD)
    except BlockingIOError:
        return None
    except OSError:
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
        except (OSError, TimeoutError) as error:
            reason = getattr(error, "strerror", None) or f"no answer within {timeout:g} s"
            raise AgentError(f"{shown or path}: nobody listens: {reason}") from error
        pid, uid, gid = _CREDENTIALS.unpack(raw)
        if pid <= 0:
            raise AgentError(
                f"{shown or path}: who listens is not in sight: the agent must see the host's processes (hostPID)"
            )
        held = _hold(pid, connection)
    if held is None:
        raise AgentError(f"{shown or path}: the process that began to listen (PID {pid}) has ended")
    return Peer(pid, uid, gid, held)


def _hold(pid: int, connection: socket.socket) -> Held | None:
    """Hold the process; None when it has ended.

    It is held before it is asked whether it lives: what is held is then of that process and no later one.
    """
    try:
        held = Held(pid)
        return held if _lives(connection) else None
    except (FileNotFoundError, ProcessLookupError):
        return None


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
