"""A proxy before a real API server that makes the faults which that server cannot be made to give.

It speaks plain HTTP to the client and TLS, as administrator, to the server. Faults are put in by tests, each for so
many of the requests that it fits.
"""

from __future__ import annotations

import asyncio
import contextlib
import re
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

import aiohttp
from aiohttp import web

from kvnode.kube.config import Configuration
from kvnode.kube.transport import abort
from tests.cluster.cluster import Cluster

_KEPT = ("Content-Type", "Retry-After")


@dataclass
class Fault:
    """What goes wrong with a request.

    `where` is a regular expression that is searched for in ``METHOD path?query``. Of the rest the first that is set
    happens: an answer of its own (`status`, `body`, `headers`); `drop`, the connection is closed, before the server
    was asked or `after`; `silence`, no answer ever; `cut_after`, the answer breaks off after so many bytes.
    """

    where: str
    times: int = 1
    status: int = 0
    body: bytes = b""
    headers: dict[str, str] = field(default_factory=dict)
    drop: bool = False
    after: bool = False
    silence: bool = False
    cut_after: int = -1
    delay: float = 0.0
    """Seconds before anything else."""
    rewrite: Callable[[bytes], bytes] | None = None
    """Changes every piece of the answer that passes."""
    lag: float = 0.0
    """Seconds for which every piece of the answer is held back."""


class FaultyServer:
    """The proxy while it runs."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self.upstream = cluster.server
        """The server that requests are passed on to."""
        self.faults: list[Fault] = []
        self.requests: list[str] = []
        """``METHOD path?query`` of every request, in order."""
        self.times: list[float] = []
        """When each of them came, by the loop's clock."""
        self.tokens: list[str] = []
        """Authorization of every request, in order."""
        self.url = ""
        self.up = True
        """While false, every connection is closed at once."""
        self.before: Callable[[str], Awaitable[None]] | None = None
        """Called with ``METHOD path?query`` of a request that is about to be passed on."""
        self._open: dict[asyncio.Transport, str] = {}
        self._session: aiohttp.ClientSession | None = None

    @property
    def configuration(self) -> Configuration:
        """How a client reaches it."""
        return Configuration(self.url)

    def count(self, where: str) -> int:
        """How many requests there were that fit."""
        return sum(1 for request in self.requests if re.search(where, request))

    @property
    def answering(self) -> int:
        """How many requests are being answered now."""
        return sum(1 for transport in self._open if not transport.is_closing())

    def cut(self, where: str = "") -> int:
        """Break the connections of requests that fit now, in the midst of whatever; the answer is how many."""
        found = [transport for transport, request in self._open.items() if re.search(where, request)]
        for transport in found:
            transport.abort()
        return len(found)

    @asynccontextmanager
    async def running(self) -> AsyncIterator[FaultyServer]:
        """Serve on a port of loopback."""
        context = ssl.create_default_context(cafile=str(self._cluster.ca))
        context.load_cert_chain(self._cluster.admin.certificate, self._cluster.admin.key)
        connector = aiohttp.TCPConnector(ssl=context, limit=0)
        async with aiohttp.ClientSession(connector=connector, auto_decompress=False) as session:
            self._session = session
            app = web.Application(client_max_size=1 << 24)
            app.router.add_route("*", "/{path:.*}", self._handle)
            runner = web.AppRunner(app, access_log=None, shutdown_timeout=0.1, handler_cancellation=True)
            await runner.setup()
            site = web.TCPSite(runner, "127.0.0.1", 0)
            await site.start()
            assert runner.addresses
            self.url = f"http://127.0.0.1:{runner.addresses[0][1]}"
            try:
                yield self
            finally:
                self.cut()
                await runner.cleanup()

    async def _handle(self, request: web.Request) -> web.StreamResponse:
        transport = request.transport
        assert isinstance(transport, asyncio.Transport)
        line = f"{request.method} {request.raw_path}"
        self._open[transport] = line
        try:
            if not self.up:
                return self._dropped(transport)
            self.requests.append(line)
            self.times.append(asyncio.get_running_loop().time())
            self.tokens.append(request.headers.get("Authorization", ""))
            fault = self._fault(line)
            if fault.delay:
                await asyncio.sleep(fault.delay)
            if fault.status:
                return web.Response(status=fault.status, body=fault.body, headers=fault.headers)
            if fault.drop and not fault.after:
                return self._dropped(transport)
            if fault.silence:
                await asyncio.Event().wait()
            return await self._forward(request, fault, transport)
        finally:
            self._open.pop(transport, None)

    def _fault(self, line: str) -> Fault:
        for fault in self.faults:
            if fault.times > 0 and re.search(fault.where, line):
                fault.times -= 1
                return fault
        return Fault("")

    async def _forward(
        self, request: web.Request, fault: Fault, transport: asyncio.Transport
    ) -> web.StreamResponse:
        assert self._session is not None
        headers = {
            name: request.headers[name]
            for name in ("Content-Type", "Accept", "Accept-Encoding", "User-Agent")
            if name in request.headers
        }
        url = self.upstream + request.raw_path
        body = await request.read()
        if self.before is not None:
            await self.before(f"{request.method} {request.raw_path}")
        async with self._session.request(request.method, url, data=body, headers=headers) as answer:
            if fault.after:
                await answer.read()
                return self._dropped(transport)
            kept = {name: answer.headers[name] for name in _KEPT if name in answer.headers}
            response = web.StreamResponse(status=answer.status, headers=kept)
            await response.prepare(request)
            passed = 0
            with _ended(answer):
                async for piece in answer.content.iter_any():
                    if fault.lag:
                        await asyncio.sleep(fault.lag)
                    if fault.rewrite:
                        piece = fault.rewrite(piece)  # noqa: PLW2901
                    if 0 <= fault.cut_after < passed + len(piece):
                        await response.write(piece[: fault.cut_after - passed])
                        abort(answer)
                        return self._dropped(transport)
                    passed += len(piece)
                    await response.write(piece)
                await response.write_eof()
            return response

    @staticmethod
    def _dropped(transport: asyncio.Transport) -> web.StreamResponse:
        transport.abort()
        return web.Response()


@contextlib.contextmanager
def _ended(answer: aiohttp.ClientResponse) -> Iterator[None]:
    """Leave nothing of the server's answer behind; the client's going away is no news here."""
    try:
        yield
    except (ConnectionResetError, aiohttp.ClientConnectionError):
        abort(answer)
    except BaseException:
        abort(answer)
        raise
