"""When is one more event the same event again.

An event that repeats is counted up, not written anew; many that differ in their message alone become one; an object
that makes too many at all is not listened to for a while. Figures: `client-go` tools/record/events_cache.go.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Generic, TypeVar

from kvnode.kube.ratelimit import TokenBucket

REMEMBERED = 4096
"""Events, groups and objects that are remembered; the longest unused are forgotten."""
SIMILAR = 10
"""Different messages of one reason within `WINDOW` before they become one event."""
WINDOW = 600.0
BURST = 25
"""Events of one object at once; then one every five minutes."""
REFILL = 1 / 300.0

K = TypeVar("K")
V = TypeVar("V")


class Recent(Generic[K, V]):
    """A mapping of limited size that forgets what was not used for longest."""

    def __init__(self, size: int) -> None:
        self._size = size
        self._items: OrderedDict[K, V] = OrderedDict()

    def get(self, key: K) -> V | None:
        """The value, which counts as use."""
        if key not in self._items:
            return None
        self._items.move_to_end(key)
        return self._items[key]

    def put(self, key: K, value: V) -> None:
        """Remember a value."""
        self._items[key] = value
        self._items.move_to_end(key)
        if len(self._items) > self._size:
            self._items.popitem(last=False)

    def __len__(self) -> int:
        return len(self._items)


@dataclass(frozen=True, slots=True)
class Subject:
    """What an event is about."""

    kind: str
    namespace: str
    name: str
    uid: str
    type: str
    reason: str


@dataclass(slots=True)
class Occurrence:
    """An event that was written, to be counted up."""

    message: str
    count: int = 0
    name: str = ""
    """Of the Event object, "" before it is written."""
    first: str = ""
    """When it first happened."""


@dataclass(slots=True)
class _Similar:
    since: float
    messages: set[str] = field(default_factory=set)


class Correlator:
    """Decides what becomes of an event."""

    def __init__(self, clock: Callable[[], float]) -> None:
        """`clock` gives seconds that only grow."""
        self._clock = clock
        self._written: Recent[tuple[Subject, str], Occurrence] = Recent(REMEMBERED)
        self._similar: Recent[Subject, _Similar] = Recent(REMEMBERED)
        self._buckets: Recent[tuple[str, str, str, str], TokenBucket] = Recent(REMEMBERED)

    def correlate(self, subject: Subject, message: str) -> Occurrence | None:
        """The occurrence that one more event belongs to, counted up; none if it is to be dropped."""
        about = (subject.kind, subject.namespace, subject.name, subject.uid)
        bucket = self._buckets.get(about)
        if bucket is None:
            bucket = TokenBucket(REFILL, BURST, self._clock)
            self._buckets.put(about, bucket)
        if not bucket.take():
            return None
        now = self._clock()
        similar = self._similar.get(subject)
        if similar is None or now - similar.since > WINDOW:
            similar = _Similar(now)
            self._similar.put(subject, similar)
        similar.messages.add(message)
        key = (subject, message)
        if len(similar.messages) > SIMILAR:
            similar.messages.discard(message)  # the set must not grow for ever
            message = f"(several events of this reason) {message}"
            key = (subject, "")
        occurrence = self._written.get(key)
        if occurrence is None:
            occurrence = Occurrence(message)
            self._written.put(key, occurrence)
        occurrence.message = message
        occurrence.count += 1
        return occurrence
