"""The HTTPS server that the API server calls."""

from __future__ import annotations

import asyncio
import logging
import ssl
import tempfile
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from aiohttp import web
from aiohttp.http_exceptions import HttpProcessingError

from kvnode.webhook.certificates import Pair
from kvnode.webhook.handlers import PATHS, Admission, ReviewError

logger = logging.getLogger(__name__)

LARGEST = 16 * 2**20
"""Bytes of the largest review: two objects as large as the API server takes, and what is around them."""

_IDLE = 120.0
"""Seconds for which a connection may bring no question: more than the 90 after which an API server closes it. Who
closes first on the other side's question would have it fail."""

_PATIENCE = 10.0
"""Seconds in which a question must be here: after the configurations' timeoutSeconds nobody waits for the answer."""

_BROKEN_OFF = (ConnectionError, HttpProcessingError, web.RequestPayloadError)
"""What comes of a client that hangs up, or sends what is no HTTP: which of them is the HTTP parser's choice."""


def make_tls(pair: Pair) -> ssl.SSLContext:
    """A server's TLS settings."""
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    load(context, pair)
    return context


def load(context: ssl.SSLContext, pair: Pair) -> None:
    """Show this certificate on every connection made from now on."""
    with tempfile.NamedTemporaryFile() as both:  # the ssl module reads from files alone
        both.write(pair.certificate + b"\n" + pair.key)
        both.flush()
        context.load_cert_chain(both.name)


def application(admission: Admission) -> web.Application:
    """The webhooks, and ``/healthz`` for kubelet."""
    app = web.Application(client_max_size=LARGEST)

    async def review(request: web.Request) -> web.Response:
        body = await _body(request)
        try:
            answer = admission.answer(request.path, body)
        except ReviewError as error:
            raise web.HTTPBadRequest(text=f"the review {error}\n") from None
        return web.Response(body=answer, content_type="application/json")

    async def healthy(_request: web.Request) -> web.Response:
        return web.Response(text="ok")

    for path in PATHS:
        app.router.add_post(path, review)
    app.router.add_get("/healthz", healthy)
    return app


async def _body(request: web.Request) -> bytes:
    """What was sent.

    Raises:
        HTTPException: it is too large, or did not arrive whole, or not in time.
    """
    if (request.content_length or 0) > LARGEST:  # said before any of it is read
        raise web.HTTPRequestEntityTooLarge(LARGEST, request.content_length or 0)
    try:
        async with asyncio.timeout(_PATIENCE):
            return await request.read()
    except TimeoutError:
        raise web.HTTPRequestTimeout(text="the review did not arrive in time\n") from None
    except _BROKEN_OFF:
        raise web.HTTPBadRequest(text="the review did not arrive whole\n") from None


class _Log(logging.LoggerAdapter[logging.Logger]):
    """The server's log, in which what a client did wrong is no defect of ours."""

    def exception(self, msg: object, *args: object, exc_info: Any = True, **kwargs: Any) -> None:
        """A line at most about a client; all about anything else."""
        if isinstance(exc_info, _BROKEN_OFF):
            self.debug("%s: %s", msg % args if isinstance(msg, str) else msg, type(exc_info).__name__)
        else:
            super().exception(msg, *args, exc_info=exc_info, **kwargs)


@asynccontextmanager
async def serving(
    admission: Admission, tls: ssl.SSLContext, host: str, port: int
) -> AsyncIterator[tuple[str, int]]:
    """Listen while the block runs; gives the address that is listened on. Questions under way are answered.

    Raises:
        OSError: the port is taken.
    """
    runner = web.AppRunner(
        application(admission),
        access_log=None,
        logger=_Log(logger),
        shutdown_timeout=5.0,
        keepalive_timeout=_IDLE,
        auto_decompress=False,  # an API server compresses no question
    )
    await runner.setup()
    try:
        await web.TCPSite(runner, host, port, ssl_context=tls).start()
        address = runner.addresses[0]
        yield str(address[0]), int(address[1])
    finally:
        await runner.cleanup()
