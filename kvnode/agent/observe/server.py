"""Metrics, health and the page over HTTP."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

from aiohttp import web

from kvnode.agent.observe import page
from kvnode.agent.observe.events import Event
from kvnode.agent.observe.exposition import CONTENT_TYPE
from kvnode.agent.observe.health import Health
from kvnode.agent.observe.metrics import Source, expose_agent, expose_vms
from kvnode.agent.observe.page import View
from kvnode.agent.observe.samples import Seen

logger = logging.getLogger(__name__)

_SECURITY = {
    "Content-Security-Policy": page.POLICY,
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cache-Control": "no-store",
}


class Looks(Protocol):
    """Who looks at the VMs."""

    async def look(self) -> list[Seen]:
        """All of the node."""


@dataclass(frozen=True, slots=True)
class State:
    """The agent, as it is shown."""

    health: Health
    source: Source
    events: Callable[[], Sequence[Event]]
    """The last ones, newest first."""


class Web:
    """One server."""

    def __init__(self, looker: Looks, state: State) -> None:
        """Nothing is opened yet."""
        self._looker = looker
        self._state = state
        self.port = 0
        """The port that it listens on."""

    async def run(self, address: str, port: int) -> None:
        """Serve until cancelled; raises OSError when the port cannot be had."""
        application = web.Application()
        application.add_routes(
            [
                web.get("/", self._page),
                web.get("/metrics", self._metrics),
                web.get("/healthz", self._healthz),
                web.get("/readyz", self._readyz),
            ]
        )
        runner = web.AppRunner(application, access_log=None)
        await runner.setup()
        try:
            site = web.TCPSite(runner, address, port)
            await site.start()
            self.port = int(runner.addresses[0][1])
            logger.info("metrics, health and the page: port %d", self.port)
            await asyncio.Event().wait()
        finally:
            await runner.cleanup()

    async def _healthz(self, _request: web.Request) -> web.Response:
        return _verdict(self._state.health.sick())

    async def _readyz(self, _request: web.Request) -> web.Response:
        return _verdict(self._state.health.not_ready())

    async def _page(self, request: web.Request) -> web.Response:
        seen, state = await self._looker.look(), self._state
        view = View(
            node=state.source.node,
            seen=seen,
            events=state.events(),
            problems=[*state.health.sick(), *state.health.not_ready()],
            now=asyncio.get_running_loop().time(),
            follows="follow" in request.query,
        )
        body = await asyncio.to_thread(page.render, view)  # of many VMs it takes a while
        return web.Response(body=body, content_type="text/html", charset="utf-8", headers=_SECURITY)

    async def _metrics(self, _request: web.Request) -> web.Response:
        seen, source = await self._looker.look(), self._state.source
        body = await asyncio.to_thread(expose_vms, seen, source.node, expose_agent(source))
        return web.Response(body=body, headers={"Content-Type": CONTENT_TYPE})


def _verdict(reasons: Sequence[str]) -> web.Response:
    if not reasons:
        return web.Response(text="ok\n")
    return web.Response(status=503, text="".join(f"{reason}\n" for reason in reasons))
