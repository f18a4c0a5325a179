"""The launcher's socket: commands, the version handshake and the memory report."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path
from typing import Any

from kvnode.launcher.server.commands import Commands
from kvnode.rpc.cmd import bind_cmd
from kvnode.rpc.memory import bind_memory
from kvnode.rpc.server import Server

#: ``await report()`` gives ``MemoryReport.as_dict()``.
MemoryReporter = Callable[[], Awaitable[Mapping[str, Any]]]


async def serve(
    socket: Path,
    commands: Commands,
    report: MemoryReporter | None = None,
    owner: tuple[int, int] | None = None,
) -> Server:
    """Serve on ``socket`` in the running event loop, until the server returned is stopped.

    ``report`` adds the service ``kvnode.memory.v1.Memory``. ``owner`` is the user's and the group's number
    that the socket is given to; nobody else gets in. Raises OSError when the socket cannot be made.
    """
    services = [*bind_cmd(commands.handlers())]
    if report is not None:
        services.append(bind_memory(report))
    server = Server(socket, services)
    await server.start(owner)
    return server
