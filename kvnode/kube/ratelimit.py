"""A token bucket: so many a second, and a burst."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable


class TokenBucket:
    """Hands out turns: ``burst`` at once, then ``rate`` a second, first come first served.

    `clock` gives seconds that only grow.
    """

    def __init__(self, rate: float, burst: int, clock: Callable[[], float] = time.monotonic) -> None:
        """Full at the start.

        Raises:
            ValueError: a rate or burst that is not positive.
        """
        if rate <= 0 or burst < 1:
            raise ValueError(f"rate {rate} and burst {burst} must be positive")
        self._rate = rate
        self._burst = float(burst)
        self._clock = clock
        self._tokens = float(burst)
        self._updated = clock()

    def reserve(self) -> float:
        """Take the next turn; the answer is the seconds until it comes."""
        self._fill()
        self._tokens -= 1
        return max(0.0, -self._tokens / self._rate)

    def take(self) -> bool:
        """Take a turn if there is one now."""
        self._fill()
        if self._tokens < 1:
            return False
        self._tokens -= 1
        return True

    def _fill(self) -> None:
        now = self._clock()
        elapsed = max(0.0, now - self._updated)
        self._tokens = min(self._burst, self._tokens + elapsed * self._rate)
        self._updated = now

    async def wait(self) -> None:
        """Take the next turn and wait for it; cancelled, the turn is given back."""
        delay = self.reserve()
        if delay <= 0:
            return
        try:
            await asyncio.sleep(delay)
        except asyncio.CancelledError:
            self._tokens += 1
            raise
