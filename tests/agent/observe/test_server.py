"""What is served, over a real socket."""

from __future__ import annotations

from collections.abc import AsyncIterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager

import aiohttp
import pytest

from kvnode.agent.observe import page
from kvnode.agent.observe.health import STUCK, Health
from kvnode.agent.observe.metrics import Source
from kvnode.agent.observe.samples import Seen
from kvnode.agent.observe.server import State, Web
from tests.agent.observe.build import EVENTS, Queue, seen
from tests.agent.observe.test_health import Agent
from tests.kube.loops import real_time, until
from tests.kube.support import background


class Looker:
    """Sees one VM."""

    async def look(self) -> list[Seen]:
        return [seen()]


def state(health: Health) -> State:
    return State(health, Source("node01", lambda: True, Queue()), lambda: EVENTS)


@asynccontextmanager
async def serving(agent: Agent | None = None) -> AsyncIterator[str]:
    web = Web(Looker(), state((agent or Agent()).health()))
    async with background(web.run("127.0.0.1", 0)):
        await until(lambda: web.port)
        yield f"http://127.0.0.1:{web.port}"


async def get(url: str) -> tuple[int, str]:
    async with aiohttp.ClientSession() as session, session.get(url) as answer:
        return answer.status, await answer.text()


@real_time
async def test_all_that_there_is() -> None:
    async with serving() as url:
        for path, text in (("healthz", "ok"), ("readyz", "ok"), ("metrics", "# TYPE"), ("", "default/web")):
            status, found = await get(f"{url}/{path}")
            assert status == 200
            assert text in found
        assert (await get(f"{url}/nothing"))[0] == 404


@real_time
async def test_the_page_is_of_now_and_may_load_nothing() -> None:
    async with serving() as url, aiohttp.ClientSession() as session, session.get(url) as answer:
        assert answer.headers["Content-Security-Policy"] == page.POLICY
        assert answer.headers["Cache-Control"] == "no-store"
        assert answer.headers["Content-Type"] == "text/html; charset=utf-8"


@pytest.mark.parametrize(
    ("agent", "healthz", "readyz"),
    [
        (Agent(connected=False), (200, "ok"), (503, "not all launchers")),
        (Agent(plugins=False), (200, "ok"), (503, "device plugins")),
        (Agent({"default/web": STUCK + 1}), (503, "default/web"), (200, "ok")),
        (Agent(watches={"pods": "gone"}), (200, "ok"), (503, "pods: gone")),
    ],
)
@real_time
async def test_health_and_readiness_tell_why_not(
    agent: Agent, healthz: tuple[int, str], readyz: tuple[int, str]
) -> None:
    async with serving(agent) as url:
        for path, (status, text) in (("healthz", healthz), ("readyz", readyz)):
            got = await get(f"{url}/{path}")
            assert got[0] == status
            assert text in got[1]


@real_time
async def test_a_loop_that_is_stuck_answers_nobody() -> None:
    """kubelet's probe fails by its time-out then: there is no other thread that would say that all is well."""
    async with serving() as url:
        host, port = url.removeprefix("http://").split(":")

        def ask() -> bytes:
            import socket  # noqa: PLC0415

            with socket.create_connection((host, int(port)), timeout=0.3) as connection:
                connection.sendall(b"GET /healthz HTTP/1.0\r\n\r\n")
                try:
                    return connection.recv(100)
                except TimeoutError:
                    return b""

        with ThreadPoolExecutor(1) as pool:
            assert pool.submit(ask).result(60) == b"", "while the loop stands still here"
        assert (await get(f"{url}/healthz"))[0] == 200
