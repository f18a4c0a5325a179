"""``python -m tests.cluster.relay FD HOST PORT``: pass connections of a listening socket on to an address."""

from __future__ import annotations

import asyncio
import contextlib
import socket
import sys

CHUNK = 1 << 16


async def serve(listener: socket.socket, host: str, port: int) -> None:
    """Relay until cancelled; then all connections end. A direction that ends is closed, the other goes on."""
    relayed: set[asyncio.Task[None]] = set()

    async def connected(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        relayed.add(task)
        writers = [writer]
        try:
            there_reader, there_writer = await asyncio.open_connection(host, port)
            writers.append(there_writer)
            await asyncio.gather(_copy(reader, there_writer), _copy(there_reader, writer))
        except OSError:
            pass
        except asyncio.CancelledError:
            for one in writers:
                one.transport.abort()  # the other side may be silent for good
            raise
        finally:
            relayed.discard(task)
            for one in writers:
                one.close()

    server = await asyncio.start_server(connected, sock=listener)
    try:
        await asyncio.Event().wait()
    finally:
        server.close()
        for task in relayed:
            task.cancel()
        await asyncio.gather(*relayed, return_exceptions=True)


async def _copy(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    with contextlib.suppress(OSError):
        while data := await reader.read(CHUNK):
            writer.write(data)
            await writer.drain()
        writer.write_eof()


if __name__ == "__main__":
    with contextlib.suppress(KeyboardInterrupt):
        asyncio.run(serve(socket.socket(fileno=int(sys.argv[1])), sys.argv[2], int(sys.argv[3])))
