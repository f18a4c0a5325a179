"""The HTTPS server that the API server calls."""

from __future__ import annotations

import ssl
import tempfile
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from aiohttp import web

from kvnode.webhook.certificates import Pair
from kvnode.webhook.handlers import PATHS, Admission, ReviewError

LARGEST = 16 * 2**20
"""Bytes of the largest review: two objects as large as the API server takes, and what is around them."""


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
        body = await request.read()
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


@asynccontextmanager
async def serving(
    admission: Admission, tls: ssl.SSLContext, host: str, port: int
) -> AsyncIterator[tuple[str, int]]:
    """Listen while the block runs; gives the address that is listened on. Questions under way are answered.

    Raises:
        OSError: the port is taken.
    """
    runner = web.AppRunner(application(admission), access_log=None, shutdown_timeout=5.0)
    await runner.setup()
    try:
        await web.TCPSite(runner, host, port, ssl_context=tls).start()
        address = runner.addresses[0]
        yield str(address[0]), int(address[1])
    finally:
        await runner.cleanup()
