"""A server on a socket of its own, and what it was asked."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Coroutine
from pathlib import Path
from typing import Any, TypeVar

from kvnode.rpc.server import Server

Result = TypeVar("Result")


def run(work: Coroutine[Any, Any, Result]) -> Result:
    """Run in an event loop of its own, for some minutes at most."""

    async def limited() -> Result:
        async with asyncio.timeout(240):
            return await work

    return asyncio.run(limited())


@contextlib.asynccontextmanager
async def serving(socket: Path, *handlers: Any) -> AsyncIterator[Server]:
    """Serve ``handlers`` on ``socket``."""
    server = Server(socket, handlers)
    await server.start()
    try:
        yield server
    finally:
        await server.stop(0)
