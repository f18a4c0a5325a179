"""Metrics, health and the page over HTTP."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

from aiohttp import web

from kvnode.agent.observe import page
from kvnode.agent.observe.domainstats import samples
from kvnode.agent.observe.exposition import CONTENT_TYPE, Exposition
from kvnode.agent.observe.samples import Looker, Seen
from kvnode.kube.objects import split_key

logger = logging.getLogger(__name__)

_SECURITY = {
    "Content-Security-Policy": "default-src 'none'; style-src 'unsafe-inline'",
    "X-Content-Type-Options": "nosniff",
}


@dataclass(frozen=True, slots=True)
class State:
    """The agent, as it is shown."""

    node: str
    is_ready: Callable[[], bool]
    events: Callable[[], Iterable[str]]
    """The last ones as lines, newest first."""
    queue_length: Callable[[], int]


class Web:
    """One server."""

    def __init__(self, looker: Looker, state: State) -> None:
        """Nothing is opened yet."""
        self._looker = looker
        self._state = state
        self._before: dict[str, tuple[float, float]] = {}
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
        return web.Response(text="ok\n")

    async def _readyz(self, _request: web.Request) -> web.Response:
        if self._state.is_ready():
            return web.Response(text="ok\n")
        return web.Response(status=503, text="not all launchers and device plugins are there yet\n")

    async def _page(self, _request: web.Request) -> web.Response:
        seen = await self._looker.look()
        state = self._state
        text = page.render(state.node, seen, dict(self._loads(seen)), state.events(), state.is_ready())
        return web.Response(text=text, content_type="text/html", headers=_SECURITY)

    async def _metrics(self, _request: web.Request) -> web.Response:
        text = str(expose(await self._looker.look(), self._state))
        return web.Response(body=text.encode(), headers={"Content-Type": CONTENT_TYPE})

    def _loads(self, seen: list[Seen]) -> Iterator[tuple[str, float]]:
        """Each VM's share of a CPU since the page was last asked for."""
        now = asyncio.get_running_loop().time()
        before, self._before = self._before, {}
        for one in seen:
            used = one.cpu_seconds
            if used is None:
                continue
            self._before[one.key] = (now, used)
            then, earlier = before.get(one.key, (now, used))
            if now > then and used >= earlier:
                yield one.key, (used - earlier) / (now - then)


def expose(seen: list[Seen], state: State) -> Exposition:
    """All metrics."""
    found = Exposition()
    ready = "Whether VMs may be scheduled to the node."
    found.add("kubevirt_virt_handler_ready_status", "gauge", ready, float(state.is_ready()), {})
    depth = "Names that could be worked on now."
    found.add("kubevirt_workqueue_depth", "gauge", depth, state.queue_length(), {"name": "virt-handler-vm"})
    for one in seen:
        _expose_one(one, state.node, found)
    return found


def _expose_one(one: Seen, node: str, found: Exposition) -> None:
    namespace, name = split_key(one.key)
    vm = {"node": node, "namespace": namespace, "name": name}
    for metric, value, labels in samples(one.stats):
        found.add(f"kubevirt_vmi_{metric.name}", metric.kind, metric.text, value, {**vm, **labels})
    report = one.memory
    if report is None:
        return
    used = "Memory of one of the VM's processes, shared pages divided, without the guest's own."
    asked = "What is requested for one of the VM's processes."
    for line in report.processes:
        labels = {**vm, "role": line.role, "pid": str(line.pid)}
        found.add("kubevirt_vmi_process_resident_bytes", "gauge", used, line.proportional, labels)
        found.add("kubevirt_vmi_process_requested_bytes", "gauge", asked, line.share, labels)
    total = "Requested memory overhead that is left; negative when it is overrun."
    found.add("kubevirt_vmi_memory_overhead_headroom_bytes", "gauge", total, report.headroom, vm)
