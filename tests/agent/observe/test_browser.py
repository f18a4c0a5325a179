"""The page in a real browser."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from aiohttp import ClientSession, web

from kvnode.agent.observe.events import Event
from kvnode.agent.observe.memorywatch import Measured
from kvnode.agent.observe.metrics import Source
from kvnode.agent.observe.samples import Seen
from kvnode.agent.observe.server import State, Web
from tests.agent.observe.browser import Tab, browser, program
from tests.agent.observe.build import EVENTS, HOSTILE, Queue, process, report, seen
from tests.agent.observe.test_health import Agent
from tests.kube.loops import real_time, until
from tests.kube.support import background

BROWSER = program()
PICTURES = os.environ.get("KVNODE_PICTURES", "")
"""Where pictures of the page are put, for who wants to see them."""

pytestmark = pytest.mark.skipif(
    BROWSER is None, reason="there is no Chromium: install Debian's package chromium"
)

TIGHT = report(process("launcher", 6, 72, 100), process("qemu", 7, 180, 78), name="db")
SHOWN = [
    seen("web"),
    seen("db", memory=Measured(TIGHT, 0.0), load=0.93),
    seen(HOSTILE, memory=Measured(report(process(HOSTILE, 7, 1, 1, command=HOSTILE)), 0.0), state=HOSTILE),
    seen("new", phase="Scheduled", state="", memory=None, samples=(), load=None),
]
TOLD = (Event("2026-11-29T10:13:00Z", f"default/{HOSTILE}", "Warning", HOSTILE, HOSTILE), *EVENTS)


class Looker:
    """Sees these VMs, or many more."""

    def __init__(self, count: int = 0) -> None:
        self.found = [*SHOWN, *(seen(f"vm-{number}") for number in range(count))]

    async def look(self) -> list[Seen]:
        return self.found


@asynccontextmanager
async def shown(count: int = 0) -> AsyncIterator[tuple[Tab, str]]:
    """The page, loaded from the agent's own server."""
    state = State(Agent().health(), Source("node01", lambda: True, Queue()), lambda: TOLD)
    served = Web(Looker(count), state)
    async with background(served.run("127.0.0.1", 0)):
        await until(lambda: served.port)
        url = f"http://127.0.0.1:{served.port}/"
        async with browser(BROWSER or "") as tab:
            await tab.open(url)
            yield tab, url


async def keep(tab: Tab, name: str) -> None:
    if PICTURES:
        (Path(PICTURES) / f"{name}.png").write_bytes(await tab.picture())


@real_time
async def test_nothing_of_a_vm_is_run_and_nothing_is_complained_about() -> None:
    async with shown() as (tab, _):
        assert await tab.value("window.hit === undefined")
        assert await tab.value("document.scripts.length + document.images.length") == 0
        assert await tab.value("document.body.innerText.includes('<script>window.hit=1</script>')")
        errors = [
            one["params"]
            for one in tab.heard
            if one["method"] in ("Log.entryAdded", "Runtime.exceptionThrown")
        ]
        assert errors == []


@real_time
async def test_the_style_is_applied_and_bars_are_as_long_as_they_say() -> None:
    async with shown() as (tab, _):
        share = await tab.value(
            "(() => { const bar = document.querySelector('svg.guest'), fill = bar.querySelector('rect');"
            "return fill.getBoundingClientRect().width / bar.getBoundingClientRect().width })()"
        )
        assert share == pytest.approx(640 / 1024, abs=0.01)
        assert await tab.value("getComputedStyle(document.querySelector('svg.bar')).height") == "8px"
        colour = "getComputedStyle(document.querySelector('{}')).fill"
        normal, beyond = [await tab.value(colour.format(css)) for css in ("svg.bar rect", "rect.beyond")]
        assert normal != beyond
        await keep(tab, "light")


@real_time
async def test_light_and_dark_can_both_be_read() -> None:
    contrast = """(() => {
      const parts = css => css.match(/[\\d.]+/g).slice(0, 3).map(x => x / 255)
        .map(x => x <= 0.04045 ? x / 12.92 : ((x + 0.055) / 1.055) ** 2.4);
      const light = css => { const [r, g, b] = parts(css); return 0.2126 * r + 0.7152 * g + 0.0722 * b };
      const behind = node => { for (; node; node = node.parentElement) {
        const css = getComputedStyle(node).backgroundColor;
        if (!css.endsWith(', 0)')) return css } return 'rgb(255, 255, 255)' };
      return Math.min(...[...document.querySelectorAll('body *')].filter(
        node => [...node.childNodes].some(one => one.nodeType === 3 && one.data.trim()) && node.innerText
      ).map(node => {
        const [a, b] = [light(getComputedStyle(node).color), light(behind(node))];
        return (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05) }))
    })()"""
    async with shown() as (tab, _):
        pages = []
        for scheme in ("light", "dark"):
            feature = {"name": "prefers-color-scheme", "value": scheme}
            await tab.do("Emulation.setEmulatedMedia", features=[feature])
            pages.append(await tab.value("getComputedStyle(document.body).backgroundColor"))
            assert await tab.value(contrast) >= 4.5, f"{scheme}: WCAG 2.2, 1.4.3"
        assert pages[0] != pages[1]
        await keep(tab, "dark")


@real_time
async def test_it_fits_a_narrow_window() -> None:
    async with shown() as (tab, _):
        await tab.do(
            "Emulation.setDeviceMetricsOverride", width=360, height=800, deviceScaleFactor=1, mobile=False
        )
        assert await tab.value("document.documentElement.scrollWidth") <= 360
        cut = "[...document.querySelectorAll('.within')].filter(one => one.scrollWidth > one.clientWidth).length"
        assert await tab.value(cut) == 0
        await keep(tab, "narrow")


@real_time
async def test_processes_of_a_vm_are_opened_from_the_keyboard() -> None:
    async with shown(count=20) as (tab, _):
        closed = "[...document.querySelectorAll('details')].filter(one => !one.open).length"
        before = await tab.value(closed)
        assert before > 0
        for _ in range(2):  # past the link, to the first of the VMs
            await tab.press("Tab", windowsVirtualKeyCode=9)
        assert await tab.value("document.activeElement.tagName") == "SUMMARY"
        await tab.press("Enter", windowsVirtualKeyCode=13, text="\r")
        assert await tab.value(closed) == before - 1


@real_time
async def test_those_who_hear_the_page_hear_what_bars_show() -> None:
    async with shown() as (tab, _):
        nodes: list[dict[str, Any]] = (await tab.do("Accessibility.getFullAXTree"))["nodes"]
        heard = {
            (node["role"]["value"], node["name"]["value"])
            for node in nodes
            if not node.get("ignored") and node.get("name", {}).get("value")
        }
        names = {name for _, name in heard}
        assert "180.0 MiB of 78.0 MiB" in names
        assert ("heading", "node01") in heard
        assert any(role == "rowheader" and name.startswith("qemu") for role, name in heard)
        assert any(role == "columnheader" and name == "requested" for role, name in heard)


@real_time
async def test_following_is_a_link_away() -> None:
    async with shown() as (tab, url):
        await tab.value("document.querySelector('header a').click()")
        await until_is(tab, f"{url}?follow")
        assert await tab.value("document.querySelector('meta[http-equiv]').content") == "10"
        assert await tab.value("document.querySelector('header a').innerText") == "Stop following"


@real_time
async def test_links_work_below_the_path_of_a_proxy() -> None:
    """Of an API server's, say: each leads to where it says, and back again."""
    async with shown() as (tab, url), proxied(url) as below:
        await tab.open(below)
        await tab.value("document.querySelector('header a').click()")
        await until_is(tab, f"{below}?follow")
        await tab.value("document.querySelector('header a').click()")
        await until_is(tab, below)
        for number, name in enumerate(("metrics", "healthz", "readyz")):
            await tab.open(below)
            await tab.value(f"document.querySelectorAll('footer a')[{number}].click()")
            await until_is(tab, below + name)
            assert await tab.value("document.body.innerText") != "not here"


@asynccontextmanager
async def proxied(url: str) -> AsyncIterator[str]:
    """A proxy that serves what is at ``url`` below a path of its own, and nothing else."""

    async def serve(request: web.Request) -> web.Response:
        asked = f"{url}{request.match_info['rest']}?{request.query_string}".rstrip("?")
        async with ClientSession() as session, session.get(asked) as answer:
            headers = {"Content-Type": answer.headers["Content-Type"]}
            return web.Response(body=await answer.read(), status=answer.status, headers=headers)

    async def miss(_request: web.Request) -> web.Response:
        return web.Response(text="not here", status=404)

    application = web.Application()
    prefix = "/api/v1/nodes/node01:8185/proxy/"
    application.add_routes([web.get(prefix + "{rest:.*}", serve), web.get("/{rest:.*}", miss)])
    runner = web.AppRunner(application)
    await runner.setup()
    try:
        await web.TCPSite(runner, "127.0.0.1", 0).start()
        yield f"http://127.0.0.1:{runner.addresses[0][1]}{prefix}"
    finally:
        await runner.cleanup()


async def until_is(tab: Tab, url: str) -> None:
    while await tab.value("document.readyState + location.href") != f"complete{url}":
        pass
