"""``python -m tests.cluster.relay FD HOST PORT``: pass connections of a listening socket on to an address."""

from __future__ import annotations

import asyncio
import contextlib
import socket
import sys

CHUNK = 1 << 16


async def serve(listener: socket.socket, host: str, port: int) -> None:
    """Relay until cancelled. A direction that ends is closed, the other goes on."""

    async def connected(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            there_reader, there_writer = await asyncio.open_connection(host, port)
        except OSError:
            writer.close()
            return
        await asyncio.gather(_copy(reader, there_writer), _copy(there_reader, writer))
        for one in (writer, there_writer):
            one.close()

    server = await asyncio.start_server(connected, sock=listener)
    await server.serve_forever()


async def _copy(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    with contextlib.suppress(OSError):
        while data := await reader.read(CHUNK):
            writer.write(data)
            await writer.drain()
        writer.write_eof()


if __name__ == "__main__":
    with contextlib.suppress(KeyboardInterrupt):
        asyncio.run(serve(socket.socket(fileno=int(sys.argv[1])), sys.argv[2], int(sys.argv[3])))
