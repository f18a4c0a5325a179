"""Run asynchronous tests: in real time, or in a loop whose clock jumps to whatever is due next."""

from __future__ import annotations

import asyncio
import contextlib
import functools
import heapq
from collections.abc import Awaitable, Callable
from typing import Any

LIMIT = 240.0
"""Seconds after which a test in real time is given up: it hangs, however busy the machine is."""


class VirtualTimeLoop(asyncio.SelectorEventLoop):
    """An event loop that never waits: when nothing can run, its time is that of the next timer."""

    def __init__(self) -> None:
        super().__init__()
        self._virtual = 1000.0

    def time(self) -> float:
        """The loop's seconds."""
        return self._virtual

    def _run_once(self) -> None:
        timers: list[Any] = self._scheduled  # type: ignore[attr-defined]
        while timers and timers[0].cancelled():
            self._timer_cancelled_count -= 1  # type: ignore[attr-defined]
            heapq.heappop(timers)._scheduled = False
        if timers and not self._ready:  # type: ignore[attr-defined]
            self._virtual = max(self._virtual, timers[0].when())
        super()._run_once()  # type: ignore[misc]


def virtual_time(test: Callable[..., Awaitable[None]]) -> Callable[..., None]:
    """Run a test in a `VirtualTimeLoop`."""

    @functools.wraps(test)
    def run(*args: Any, **kwargs: Any) -> None:
        with asyncio.Runner(loop_factory=VirtualTimeLoop) as runner:
            runner.run(test(*args, **kwargs))  # type: ignore[arg-type]

    return run


def real_time(test: Callable[..., Awaitable[None]], limit: float = LIMIT) -> Callable[..., None]:
    """Run a test in an ordinary loop, and give it up when it hangs."""

    @functools.wraps(test)
    def run(*args: Any, **kwargs: Any) -> None:
        async def limited() -> None:
            try:
                async with asyncio.timeout(limit):
                    await test(*args, **kwargs)
            finally:
                await _hung_up()

        asyncio.run(limited())

    return run


async def _hung_up() -> None:
    """Wait until every connection of this loop is closed: TLS is ended by both sides, after its owner let go of it, and
    a loop that ends before would leave its socket to a later test's garbage collection.
    """
    selector = asyncio.get_running_loop()._selector  # type: ignore[attr-defined]
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(2):
            while len(selector.get_map()) > 1:  # the loop's own
                await asyncio.sleep(0.01)


def minutes(count: float) -> Callable[[Callable[..., Awaitable[None]]], Callable[..., None]]:
    """Run a test that takes so many minutes, in an ordinary loop, and give it up when it hangs."""
    return functools.partial(real_time, limit=LIMIT + 60 * count)


async def settle(turns: int = 20) -> None:
    """Let everything run that can."""
    for _ in range(turns):
        await asyncio.sleep(0)


async def until(condition: Callable[[], object], seconds: float = 60.0) -> None:
    """Wait until a condition holds.

    Raises:
        TimeoutError: it does not after so many seconds.
    """
    async with asyncio.timeout(seconds):
        while not condition():
            await asyncio.sleep(0.01)


def now() -> float:
    """The running loop's time."""
    return asyncio.get_running_loop().time()
