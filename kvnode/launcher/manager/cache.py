"""Values that are asked for more often than they change."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from typing import Generic, TypeVar

Value = TypeVar("Value")


class TimedCache(Generic[Value]):
    """Keeps a value for some seconds. Those who ask while it is made wait for the same; errors are not kept."""

    def __init__(self, seconds: float, make: Callable[[], Awaitable[Value]]) -> None:
        """``await make()`` gives the value anew."""
        self._seconds = seconds
        self._make = make
        self._until = 0.0
        self._value: Value | None = None
        self._being_made: asyncio.Task[Value] | None = None

    async def get(self) -> Value:
        """The value; raises what making it raised."""
        if self._value is not None and time.monotonic() < self._until:
            return self._value
        task = self._being_made
        if task is None:
            task = self._being_made = asyncio.ensure_future(self._renew())
            task.add_done_callback(self._made)
        return await asyncio.shield(task)

    async def _renew(self) -> Value:
        value = await self._make()
        self._value, self._until = value, time.monotonic() + self._seconds
        return value

    def _made(self, task: asyncio.Task[Value]) -> None:
        self._being_made = None
        if not task.cancelled():
            task.exception()
