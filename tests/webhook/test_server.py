"""The HTTPS server, asked by those who mean it no good."""

from __future__ import annotations

import asyncio
import gzip
import logging
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import orjson
import pytest
from aiohttp import web, web_protocol
from aiohttp.http_parser import HttpRequestParser, HttpRequestParserPy

from kvnode.webhook import server
from kvnode.webhook.certificates import Material, make
from kvnode.webhook.handlers import Admission
from kvnode.webhook.server import make_tls, serving
from tests.kube.loops import real_time
from tests.webhook.ask import review, settings, vmi


@pytest.fixture(scope="module")
def material() -> Material:
    return make(("127.0.0.1",))


@asynccontextmanager
async def served(material: Material) -> AsyncIterator[int]:
    async with serving(Admission(settings()), make_tls(material.serving), "127.0.0.1", 0) as address:
        yield address[1]


async def send(material: Material, port: int, *parts: bytes, pause: float = 0.0) -> bytes:
    """All that the server answers to these bytes until it closes, or its whole first answer."""
    trusting = ssl.create_default_context(cadata=material.bundle.decode())
    reader, writer = await asyncio.open_connection("127.0.0.1", port, ssl=trusting)
    try:
        for part in parts:
            writer.write(part)
            await writer.drain()
            await asyncio.sleep(pause)
        head = await reader.readuntil(b"\r\n\r\n")
        length = next(
            (one for one in head.split(b"\r\n") if one.lower().startswith(b"content-length")), b":0"
        )
        return head + await reader.readexactly(int(length.split(b":")[1]))
    except (ConnectionError, asyncio.IncompleteReadError) as error:
        return getattr(error, "partial", b"")
    finally:
        writer.transport.abort()


def post(path: str, body: bytes, *headers: str, length: int | None = None) -> bytes:
    count = len(body) if length is None else length
    lines = (f"POST {path} HTTP/1.1", "Host: x", f"Content-Length: {count}", *headers, "", "")
    return "\r\n".join(lines).encode() + body


GOOD = orjson.dumps(review(vmi()))


@real_time
@pytest.mark.parametrize(
    ("sent", "status"),
    [
        (post("/validate", GOOD), b"200"),
        (post("/validate", b""), b"400"),
        (post("/validate", b"\xff\xfe{"), b"400"),
        (post("/validate", GOOD.replace(b"testvmi", b"\xc3\x28")), b"400"),
        (post("/validate", b'{"apiVersion": "\\ud800"}'), b"400"),
        (post("/validate", b"[" * 1_000_000), b"400"),
        (post("/validate", gzip.compress(GOOD), "Content-Encoding: gzip"), b"400"),
        (post("/validate", b"", length=2**40), b"413"),
        (post("/elsewhere", GOOD), b"404"),
        (post("/healthz", GOOD), b"405"),
        (b"GET /validate HTTP/1.1\r\nHost: x\r\n\r\n", b"405"),
        (b"GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n", b"200"),
        (b"nonsense\r\n\r\n", b"400"),
        (b"GET /" + b"x" * 100_000 + b" HTTP/1.1\r\n\r\n", b"400"),
        (b"POST /validate HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n", b"400"),
    ],
    ids=lambda value: value[:40].decode("latin-1") if isinstance(value, bytes) else None,
)
async def test_whatever_is_sent_is_answered_without_a_traceback(
    material: Material, sent: bytes, status: bytes, caplog: pytest.LogCaptureFixture
) -> None:
    async with served(material) as port:
        answer = await asyncio.wait_for(send(material, port, sent), 60)
        assert answer.split(b" ", 2)[1:2] == [status], answer[:300]
        assert b"Traceback" not in answer
        assert (await send(material, port, post("/mutate", GOOD))).startswith(b"HTTP/1.1 200 ")
    assert [one for one in caplog.records if one.exc_info] == []


@real_time
async def test_who_sends_nothing_holds_nobody_up_and_is_hung_up_on(
    material: Material, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(server, "_IDLE", 3.0)
    monkeypatch.setattr(server, "_PATIENCE", 3.0)
    async with served(material) as port:
        idle = [asyncio.create_task(send(material, port)) for _ in range(50)]
        by_bytes = asyncio.create_task(send(material, port, *[b"X"] * 100, pause=0.1))
        body = asyncio.create_task(send(material, port, post("/validate", b"{", length=1000)))
        assert (await send(material, port, post("/validate", GOOD))).startswith(b"HTTP/1.1 200 ")
        assert await asyncio.wait_for(asyncio.gather(*idle), 60) == [b""] * 50
        assert (await asyncio.wait_for(body, 60)).startswith(b"HTTP/1.1 408 ")
        assert await asyncio.wait_for(by_bytes, 60) == b""


CHUNKED = b"POST /validate HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n1\r\n{\r\n"
"""A question of which there is more to come."""


REFUSALS = (b"HTTP/1.1 400 ", b"HTTP/1.1 408 ")


@pytest.mark.parametrize(
    ("parser", "rest"),
    [
        (HttpRequestParser, b"zz\r\n"),
        (HttpRequestParserPy, b"zz\r\n"),
        (HttpRequestParserPy, b"1\r\n{\r\nzz\r\n"),
    ],
    ids=["ordinary", "pure", "pure-with-more"],
)
@real_time
async def test_a_question_that_breaks_off_is_refused(
    material: Material,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    parser: type,
    rest: bytes,
) -> None:
    monkeypatch.setattr(web_protocol, "HttpRequestParser", parser)
    monkeypatch.setattr(server, "_PATIENCE", 3.0)  # the parser in C waits for what cannot come
    async with served(material) as port:
        answer = await asyncio.wait_for(send(material, port, CHUNKED, rest, pause=0.1), 60)
    assert answer.startswith(REFUSALS[: 1 if parser is HttpRequestParserPy else 2]), answer
    assert b"the review did not arrive " in answer


@real_time
async def test_an_api_server_s_connections_stay_open_longer_than_it_keeps_them(material: Material) -> None:
    """Its client closes idle ones after 90 s; a question into a connection that we close would fail."""
    assert server._IDLE > 90
    trusting = ssl.create_default_context(cadata=material.bundle.decode())
    async with served(material) as port:
        reader, writer = await asyncio.open_connection("127.0.0.1", port, ssl=trusting)
        for _ in range(3):
            writer.write(post("/validate", GOOD))
            head = await reader.readuntil(b"\r\n\r\n")
            assert head.startswith(b"HTTP/1.1 200 ")
            assert b"close" not in head
            length = int(head.lower().split(b"content-length:")[1].split(b"\r\n")[0])
            await reader.readexactly(length)
        writer.transport.abort()


@pytest.mark.parametrize(
    "sent", [post("/validate", GOOD[:50], length=len(GOOD)), CHUNKED], ids=["half", "chunks"]
)
@real_time
async def test_who_hangs_up_in_the_middle_of_a_question_is_refused_like_others(
    material: Material, sent: bytes, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    caplog.set_level(logging.DEBUG)
    read, begun, refused = server._body, asyncio.Event(), asyncio.Event()

    async def body(request: web.Request) -> bytes:
        begun.set()
        try:
            return await read(request)
        except web.HTTPBadRequest:
            refused.set()
            raise

    monkeypatch.setattr(server, "_body", body)
    trusting = ssl.create_default_context(cadata=material.bundle.decode())
    async with served(material) as port:
        _, writer = await asyncio.open_connection("127.0.0.1", port, ssl=trusting)
        writer.write(sent)
        await asyncio.wait_for(begun.wait(), 60)
        await asyncio.sleep(0.2)  # all of it that there is has come
        writer.transport.abort()
        await asyncio.wait_for(refused.wait(), 60)
        assert (await send(material, port, post("/validate", GOOD))).startswith(b"HTTP/1.1 200 ")
    # Not even at the lowest level is it told as an error: it is an ordinary answer that nobody waits for.
    assert [one.getMessage() for one in caplog.records if one.name.startswith("kvnode")] == []


@real_time
async def test_who_leaves_before_the_answer_is_no_defect(
    material: Material, caplog: pytest.LogCaptureFixture
) -> None:
    trusting = ssl.create_default_context(cadata=material.bundle.decode())
    async with served(material) as port:
        _, writer = await asyncio.open_connection("127.0.0.1", port, ssl=trusting)
        writer.write(post("/validate", GOOD))
        await writer.drain()
        writer.transport.abort()
        assert (await send(material, port, post("/validate", GOOD))).startswith(b"HTTP/1.1 200 ")
    assert [one for one in caplog.records if one.levelno >= logging.ERROR] == []
