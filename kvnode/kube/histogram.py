"""How often something took how long."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator, Sequence

DURATIONS = tuple(1e-8 * 10**power for power in range(10))
"""Seconds, from 10 ns to 10 s (``pkg/monitoring/metrics/common/workqueue/metrics.go:27-31``)."""


class Histogram:
    """Counts values by the first bound that they do not exceed."""

    def __init__(self, bounds: Sequence[float] = DURATIONS) -> None:
        """`bounds` grow."""
        self._bounds = tuple(bounds)
        self._counts = [0] * (len(self._bounds) + 1)
        self.sum = 0.0
        """Of all values."""

    def observe(self, value: float) -> None:
        """Count a value."""
        self._counts[bisect_left(self._bounds, value)] += 1
        self.sum += value

    def __iter__(self) -> Iterator[tuple[float, int]]:
        """Each bound, infinity at the end, and how many values are not above it."""
        total = 0
        for bound, count in zip((*self._bounds, float("inf")), self._counts, strict=True):
            total += count
            yield bound, total
