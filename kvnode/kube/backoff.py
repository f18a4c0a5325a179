"""Growing delays."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from typing import Generic, TypeVar

K = TypeVar("K")


class Backoff:
    """The delays of one thing that keeps failing: ``base``, then ``factor`` times more each time, at most ``cap``.

    `jitter` is the part of a delay that is added at random, so that many that fail together do not return together.
    """

    def __init__(
        self,
        base: float,
        cap: float,
        *,
        factor: float = 2.0,
        jitter: float = 0.0,
        random_unit: Callable[[], float] = random.random,
    ) -> None:
        """Delays are seconds; `random_unit` gives numbers from 0 to 1."""
        self._base = base
        self._cap = cap
        self._factor = factor
        self._jitter = jitter
        self._random = random_unit
        self.failures = 0

    def next(self) -> float:
        """Count a failure; the answer is the delay before the next try."""
        try:
            delay = min(self._cap, self._base * self._factor**self.failures)
        except OverflowError:
            delay = self._cap
        self.failures += 1
        return delay * (1 + self._jitter * self._random())

    def reset(self) -> None:
        """It worked: start over."""
        self.failures = 0


class ItemBackoff(Generic[K]):
    """A `Backoff` an item, made when the item first fails."""

    def __init__(self, base: float = 0.005, cap: float = 1000.0) -> None:
        """Delays are seconds; the defaults are those of Kubernetes' work queues (`client-go` util/workqueue)."""
        self._base = base
        self._cap = cap
        self._items: dict[K, Backoff] = {}

    def next(self, item: K) -> float:
        """Count a failure of the item; the answer is its delay."""
        return self._items.setdefault(item, Backoff(self._base, self._cap)).next()

    def failures(self, item: K) -> int:
        """How often the item failed since it was last forgotten."""
        backoff = self._items.get(item)
        return backoff.failures if backoff else 0

    def __iter__(self) -> Iterator[K]:
        """The items that failed and were not forgotten."""
        return iter(list(self._items))

    def forget(self, item: K) -> None:
        """It worked."""
        self._items.pop(item, None)
