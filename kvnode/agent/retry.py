"""Back-offs of things that are tried again for one VMI."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass


@dataclass(slots=True)
class _Try:
    last: float
    due: float
    wait: float
    failed: bool = False


@dataclass(slots=True)
class _Gap:
    began: float
    due: float
    wait: float


class IoErrorRetry:
    """When a VM that is paused by its storage is resumed (``pkg/virt-handler/retry_manager.go``).

    The first failure is tried at once. One that comes within 30 s of a try is its result, and the next try waits: 10 s,
    then twice as long each time, at most 3 min. A failure that comes later is a new one.
    """

    def __init__(
        self, clock: Callable[[], float], first: float = 10.0, longest: float = 180.0, window: float = 30.0
    ) -> None:
        """`clock` gives seconds that only grow."""
        self._clock = clock
        self._first, self._longest, self._window = first, longest, window
        self._tries: dict[str, _Try] = {}

    def delay(self, uid: str) -> float:
        """Seconds to wait after one more failure of the VM; 0: try now."""
        now = self._clock()
        self._forget_old(now)
        known = self._tries.get(uid)
        if known is None or (not known.failed and now >= known.last + self._window):
            self._tries[uid] = _Try(now, now + self._first, self._first)
            return 0.0
        if not known.failed:
            known.failed = True
            return max(0.0, known.due - now)
        if now <= known.due:
            # Never 0, which would say that it may be tried.
            return max(known.due - now, 0.001)
        known.wait = min(known.wait * 2, self._longest)
        known.last, known.due, known.failed = now, now + known.wait, False
        return 0.0

    def __len__(self) -> int:
        return len(self._tries)

    def _forget_old(self, now: float) -> None:
        for uid, one in list(self._tries.items()):
            worked = not one.failed and now >= one.last + self._window
            abandoned = one.failed and now >= one.due + self._longest + self._window
            if worked or abandoned:
                del self._tries[uid]


class BackoffLimiter:
    """How often something is tried: at once, then ever more seldom, and no more after some hours.

    3 s after the first try, then 1.8 times as long each time up to 10 min, for 5 h (``pkg/executor/backoff.go``).
    """

    def __init__(
        self,
        clock: Callable[[], float],
        first: float = 3.0,
        factor: float = 1.8,
        longest: float = 600.0,
        limit: float = 18_000.0,
    ) -> None:
        """`clock` gives seconds that only grow; the others are seconds too, but `factor`."""
        self._clock = clock
        self._first, self._factor, self._longest, self._limit = first, factor, longest, limit
        self._gaps: dict[str, _Gap] = {}

    def allows(self, uid: str) -> bool:
        """Whether it may be tried now; counts as a try when it may."""
        now = self._clock()
        gap = self._gaps.setdefault(uid, _Gap(now, now, self._first))
        if now < gap.due or now >= gap.began + self._limit:
            return False
        gap.due = now + gap.wait
        gap.wait = min(gap.wait * self._factor, self._longest)
        return True

    def forget(self, uid: str) -> None:
        """It succeeded, or the VMI is gone."""
        self._gaps.pop(uid, None)

    def __len__(self) -> int:
        return len(self._gaps)
