"""The names that wait for their turn.

A name is in the queue once however often it is added; one that is added while it is worked on comes again after
that. Failed names return with growing delay. Names that are urgent go ahead of others, but do not keep them out.
"""

from __future__ import annotations

import asyncio
import heapq
import logging
import math
from collections import OrderedDict, deque
from collections.abc import Awaitable, Callable

from kvnode.kube.backoff import ItemBackoff
from kvnode.kube.histogram import Histogram
from kvnode.kube.ratelimit import TokenBucket

logger = logging.getLogger(__name__)

AHEAD = 8
"""Urgent names in a row while another waits."""


class ShutDown(Exception):  # noqa: N818 — an end, not an error
    """The queue was shut down and is empty."""


class WorkQueue:
    """Names for workers, in one event loop, whose clock is the queue's.

    The delay of a failed name is the longer of its own (5 ms, doubled each time, at most 1000 s) and its turn in a
    bucket that all share (10 a second, burst 100): `client-go` util/workqueue/default_rate_limiters.go.
    """

    def __init__(
        self,
        name: str,
        *,
        base: float = 0.005,
        cap: float = 1000.0,
        rate: float = 10.0,
        burst: int = 100,
    ) -> None:
        """`name` is for logs and metrics. To be made inside the event loop."""
        self.name = name
        self._loop = asyncio.get_running_loop()
        self._backoff: ItemBackoff[str] = ItemBackoff(base, cap)
        self._bucket = TokenBucket(rate, burst, self._loop.time)
        self._ready: OrderedDict[str, None] = OrderedDict()
        self._ready_first: OrderedDict[str, None] = OrderedDict()
        self._ahead = 0
        self._dirty: dict[str, bool] = {}
        """The names that are in, and whether they are urgent."""
        self._working: dict[str, float] = {}
        self._due: dict[str, float] = {}
        self._due_urgent: set[str] = set()
        self._heap: list[tuple[float, str]] = []
        self._timer: asyncio.TimerHandle | None = None
        self._waiters: deque[asyncio.Future[None]] = deque()
        self._stopped = False
        self.adds = 0
        """How often a name was put in that was not in."""
        self.retries = 0
        """How often a name failed."""
        self.waited = Histogram()
        """Seconds that names that could be worked on waited for a worker."""
        self.worked = Histogram()
        """Seconds that work on a name took."""
        self._since: dict[str, float] = {}

    def __len__(self) -> int:
        """Names that could be worked on now."""
        return len(self._ready) + len(self._ready_first)

    def running(self) -> dict[str, float]:
        """The names that are worked on, and seconds since that began."""
        now = self._loop.time()
        return {key: now - since for key, since in self._working.items()}

    @property
    def delayed(self) -> int:
        """Names that wait for their time."""
        return len(self._due)

    def add(self, key: str) -> None:
        """Put a name in, unless it is in."""
        self._add(key, urgent=False)

    def add_urgent(self, key: str) -> None:
        """Put a name in, or one that is in, ahead of those that are not urgent."""
        self._add(key, urgent=True)

    def _add(self, key: str, *, urgent: bool) -> None:
        known = self._dirty.get(key)
        if self._stopped or known or known == urgent:
            return
        self._dirty[key] = urgent
        self.adds += known is None
        self._since.setdefault(key, self._loop.time())
        if key not in self._working:
            self._ready.pop(key, None)
            self._put(key)

    def _put(self, key: str) -> None:
        (self._ready_first if self._dirty[key] else self._ready)[key] = None
        self._wake()

    def add_after(self, key: str, delay: float, *, urgent: bool = False) -> None:
        """Put a name in after ``delay`` seconds, urgent then or not; the earliest of several such times counts."""
        if delay <= 0:
            self._add(key, urgent=urgent)
            return
        due = self._loop.time() + delay
        if urgent:
            self._due_urgent.add(key)
        if self._stopped or self._due.get(key, due + 1) <= due:
            return
        self._due[key] = due
        heapq.heappush(self._heap, (due, key))
        self._arm()

    def add_rate_limited(self, key: str) -> float:
        """Put a name that failed in after its delay, which is the answer in seconds."""
        self.retries += 1
        delay = max(self._backoff.next(key), self._bucket.reserve())
        self.add_after(key, delay)
        return delay

    def forget(self, key: str) -> None:
        """The name was worked on with success: its next failure is its first."""
        self._backoff.forget(key)

    def retry_now(self) -> None:
        """What made names fail may be over: bring all of them at once, as if they had not failed."""
        for key in self._backoff:
            self._backoff.forget(key)
            self.add(key)

    def failures(self, key: str) -> int:
        """How often the name failed since then."""
        return self._backoff.failures(key)

    async def get(self) -> str:
        """The next name; `done` must be called for it.

        Raises:
            ShutDown: there will be none.
        """
        while not len(self):
            if self._stopped:
                raise ShutDown
            waiter = self._loop.create_future()
            self._waiters.append(waiter)
            try:
                await waiter
            except asyncio.CancelledError:
                if waiter.done() and not waiter.cancelled():
                    self._wake()  # it was meant for us: let another have it
                elif waiter in self._waiters:
                    self._waiters.remove(waiter)
                raise
        key = self._next()
        del self._dirty[key]
        now = self._working[key] = self._loop.time()
        self.waited.observe(now - self._since.pop(key, now))
        return key

    def _next(self) -> str:
        first = self._ready_first and not (self._ready and self._ahead >= AHEAD)
        self._ahead = self._ahead + 1 if first else 0
        return (self._ready_first if first else self._ready).popitem(last=False)[0]

    def done(self, key: str) -> None:
        """The name has been worked on, whatever came of it."""
        since = self._working.pop(key, None)
        if since is not None:
            self.worked.observe(self._loop.time() - since)
        if key in self._dirty:  # added meanwhile
            self._put(key)

    def shut_down(self) -> None:
        """Take nothing more; what is ready is still given out."""
        self._stopped = True
        if self._timer:
            self._timer.cancel()
        self._due.clear()
        self._due_urgent.clear()
        self._heap.clear()
        while self._waiters:
            self._wake()

    def _wake(self) -> None:
        while self._waiters:
            waiter = self._waiters.popleft()
            if not waiter.done():
                waiter.set_result(None)
                return

    def _arm(self) -> None:
        if self._timer:
            self._timer.cancel()
            self._timer = None
        if self._heap:
            self._timer = self._loop.call_at(self._heap[0][0], self._release)

    def _release(self) -> None:
        now = self._loop.time()
        while self._heap and self._heap[0][0] <= now:
            due, key = heapq.heappop(self._heap)
            if self._due.get(key) == due:  # not one that an earlier time replaced
                del self._due[key]
                self._add(key, urgent=key in self._due_urgent)
                self._due_urgent.discard(key)
        self._arm()


def _is_cancelled(task: asyncio.Task[None] | None) -> bool:
    return task is not None and task.cancelling() > 0


Reconcile = Callable[[str], Awaitable[None]]


async def work(queue: WorkQueue, workers: int, reconcile: Reconcile, *, patience: float = math.inf) -> None:
    """Work on the queue's names with so many workers until it is shut down.

    An exception of ``reconcile`` is logged and brings the name back with growing delay. A worker that is busy with one
    name for ``patience`` seconds is replaced, and ends after it: names that take long hold up no others.
    """
    loop = asyncio.get_running_loop()
    replaced: set[asyncio.Task[None] | None] = set()

    def replace(task: asyncio.Task[None] | None) -> None:
        if not _is_cancelled(task):  # else all of them end
            replaced.add(task)
            group.create_task(worker())

    async def worker() -> None:
        task = asyncio.current_task()
        while task not in replaced:
            try:
                key = await queue.get()
            except ShutDown:
                return
            timer = loop.call_later(patience, replace, task) if patience < math.inf else None
            try:
                await attempt(key)
            finally:
                queue.done(key)
                if timer is not None:
                    timer.cancel()
            if _is_cancelled(task):  # under a pass that lost it
                raise asyncio.CancelledError
        replaced.discard(task)

    async def attempt(key: str) -> None:
        try:
            await reconcile(key)
        except Exception as error:  # any failure means the same: once more
            delay = queue.add_rate_limited(key)
            logger.info("%s: %s failed, again in %.3f s: %s", queue.name, key, delay, error or repr(error))
            logger.debug("%s: %s", queue.name, key, exc_info=error)
        else:
            queue.forget(key)

    async with asyncio.TaskGroup() as group:
        for _ in range(workers):
            group.create_task(worker())
