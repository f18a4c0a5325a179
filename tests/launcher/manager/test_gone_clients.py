"""Clients whose deadline passes: what they asked for is done to its end all the same."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest

from kvnode.launcher.manager.instance import Instance
from kvnode.launcher.manager.manager import Manager
from kvnode.launcher.manager.options import ManagerOptions
from kvnode.virt.connection import Connection

VMI = Instance.read(json.dumps({"metadata": {"namespace": "n", "name": "a", "uid": "u"}}).encode())


class Slow:
    """Does everything in two steps, and not at once."""

    def __init__(self) -> None:
        self.steps: list[str] = []

    def __getattr__(self, name: str) -> Any:
        async def work(*_arguments: object) -> None:
            self.steps.append(f"{name} begins")
            await asyncio.sleep(0.05)
            self.steps.append(f"{name} ends")

        return work


@pytest.mark.parametrize(
    ("rpc", "arguments", "does"),
    [("freeze", (60,), "freeze"), ("unfreeze", (), "thaw"), ("shutdown", (), "shutdown")],
)
def test_a_guest_is_not_left_half_way(rpc: str, arguments: tuple[int, ...], does: str) -> None:
    """Frozen with nobody to thaw it, say."""
    slow = Slow()

    async def body() -> None:
        manager = Manager(Connection("", lambda *_: None, lambda: None), ManagerOptions("n", "a", "u"))
        manager._freezer = manager._lifecycle = slow  # type: ignore[assignment]
        asked = asyncio.ensure_future(getattr(manager, rpc)(VMI, *arguments))
        while not slow.steps:
            await asyncio.sleep(0)
        asked.cancel()
        with pytest.raises(asyncio.CancelledError):
            await asked
        await asyncio.sleep(0.2)
        await manager.close()

    asyncio.run(body())
    assert slow.steps == [f"{does} begins", f"{does} ends"]
