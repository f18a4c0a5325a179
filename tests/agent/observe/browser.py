"""Chromium without a window, spoken to by its own protocol (DevTools) over a web socket."""

from __future__ import annotations

import asyncio
import json
import shutil
import tempfile
from base64 import b64decode
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import aiohttp

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
_QUIET = (
    *("--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--hide-scrollbars"),
    *("--disable-background-networking", "--disable-component-update", "--disable-sync"),
    *("--remote-debugging-port=0", "--window-size=1200,1400"),
)


def program() -> str | None:
    """The browser of this machine, if it has one."""
    return next((found for name in NAMES if (found := shutil.which(name))), None)


class Tab:
    """One page."""

    def __init__(self, socket: aiohttp.ClientWebSocketResponse) -> None:
        self._socket = socket
        self._number = 0
        self.heard: list[dict[str, Any]] = []
        """Events that came meanwhile."""

    async def do(self, method: str, **parameters: Any) -> dict[str, Any]:
        """Call a method of the protocol; raises AssertionError when it is refused."""
        self._number += 1
        await self._socket.send_json({"id": self._number, "method": method, "params": parameters})
        while True:
            message = await self._receive()
            if message.get("id") == self._number:
                assert "error" not in message, message["error"]
                result: dict[str, Any] = message["result"]
                return result

    async def open(self, url: str) -> None:
        """Go there and wait until it is loaded."""
        self.heard.clear()
        await self.do("Page.navigate", url=url)
        while not any(one["method"] == "Page.loadEventFired" for one in self.heard):
            await self._receive()

    async def value(self, script: str) -> Any:
        """The value of an expression."""
        found = await self.do("Runtime.evaluate", expression=script, returnByValue=True)
        assert "exceptionDetails" not in found, found
        return found["result"].get("value")

    async def press(self, key: str, **about: Any) -> None:
        """Press a key."""
        for kind in ("keyDown", "keyUp"):
            await self.do("Input.dispatchKeyEvent", type=kind, key=key, code=key, **about)

    async def picture(self) -> bytes:
        """The page as PNG."""
        found = await self.do("Page.captureScreenshot", format="png", captureBeyondViewport=True)
        return b64decode(found["data"])

    async def _receive(self) -> dict[str, Any]:
        message: dict[str, Any] = json.loads((await self._socket.receive()).data)
        if "method" in message:
            self.heard.append(message)
        return message


@asynccontextmanager
async def browser(name: str) -> AsyncIterator[Tab]:
    """A page of a browser that runs for it alone."""
    home = tempfile.mkdtemp(prefix="kvchrome")
    process = await asyncio.create_subprocess_exec(
        *(name, *_QUIET, f"--user-data-dir={home}", "about:blank"), stderr=asyncio.subprocess.DEVNULL
    )
    try:
        port = Path(home) / "DevToolsActivePort"
        async with asyncio.timeout(50):
            while not port.exists() or len(port.read_text().split()) < 2:
                await asyncio.sleep(0.05)
        address = f"http://127.0.0.1:{port.read_text().split()[0]}"
        async with aiohttp.ClientSession() as session:
            async with session.get(f"{address}/json") as answer:
                page = next(one for one in await answer.json() if one["type"] == "page")
            async with session.ws_connect(page["webSocketDebuggerUrl"], max_msg_size=0) as socket:
                tab = Tab(socket)
                for domain in ("Page", "Runtime", "Log", "Accessibility"):
                    await tab.do(f"{domain}.enable")
                yield tab
    finally:
        process.kill()
        await process.wait()
        shutil.rmtree(home, ignore_errors=True)
