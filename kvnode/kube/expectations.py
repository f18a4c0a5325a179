"""What a controller has done and its cache does not show yet.

A controller that creates or deletes says so before the call; until its watch has shown the effect it does not act
for the same key again. Rules: pkg/controller/expectations.go.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

TTL = 300.0


@dataclass(slots=True)
class _Record:
    since: float
    adds: int = 0
    dels: int = 0
    deleting: set[str] = field(default_factory=set)


class Expectations:
    """Creations and deletions expected, by the key of the object that is controlled."""

    def __init__(self, clock: Callable[[], float] = time.monotonic, ttl: float = TTL) -> None:
        """After `ttl` seconds what was expected is taken for missed and no longer waited for."""
        self._clock = clock
        self._ttl = ttl
        self._records: dict[str, _Record] = {}

    def expect_creations(self, key: str, count: int) -> None:
        """Expect so many creations, and nothing that was expected before."""
        self._records[key] = _Record(self._clock(), adds=count)

    def expect_deletions(self, key: str, deleted: Iterable[str]) -> None:
        """Expect the deletion of the objects with these keys, and nothing that was expected before."""
        deleting = set(deleted)
        self._records[key] = _Record(self._clock(), dels=len(deleting), deleting=deleting)

    def creation_observed(self, key: str) -> None:
        """A creation was seen, or its call failed."""
        if record := self._records.get(key):
            record.adds -= 1

    def deletion_observed(self, key: str, deleted: str) -> None:
        """The deletion of an object was seen, or its call failed; one that is not expected counts for nothing."""
        record = self._records.get(key)
        if record and deleted in record.deleting:
            record.deleting.remove(deleted)
            record.dels -= 1

    def clear(self, key: str) -> None:
        """Expect nothing any more; the record stays, fulfilled."""
        self._records[key] = _Record(self._clock())

    def forget(self, key: str) -> None:
        """The controlled object is gone."""
        self._records.pop(key, None)

    def satisfied(self, key: str) -> bool:
        """Whether the controller may act for the key: all was seen, nothing was expected, or it took too long."""
        record = self._records.get(key)
        if record is None or (record.adds <= 0 and record.dels <= 0):
            return True
        return self._clock() - record.since > self._ttl

    def pending(self, key: str) -> tuple[int, int]:
        """Creations and deletions still expected; (0, 0) without a record."""
        record = self._records.get(key)
        return (max(0, record.adds), max(0, record.dels)) if record else (0, 0)

    def __len__(self) -> int:
        return len(self._records)
