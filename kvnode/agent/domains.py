"""The domains that launchers tell of, and how their news reach the queue."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Protocol

from kvnode.agent.domain import Domain
from kvnode.kube.objects import split_key
from kvnode.virt.domain_json import make_metadata, make_status, new_domain


class EventQueue(Protocol):
    """The queue, as events use it."""

    def add(self, key: str) -> None:
        """Work on ``key`` as soon as there is a worker."""

    def forget(self, key: str) -> None:
        """Forget its failures."""


class DomainStore:
    """The last that was heard of each domain.

    News are acted on at once: failures of earlier passes must not keep a guest that has come up from being seen.
    """

    def __init__(self, queue: EventQueue) -> None:
        self._queue = queue
        self._domains: dict[str, Domain] = {}

    def get(self, key: str) -> Domain | None:
        """The last that was heard; one that is deleted says so itself."""
        return self._domains.get(key)

    def delete(self, key: str) -> None:
        """Forget it; nothing is put into the queue."""
        self._domains.pop(key, None)

    def __iter__(self) -> Iterator[Domain]:
        return iter(list(self._domains.values()))

    def heard(self, kind: str, raw: Mapping[str, Any]) -> None:
        """Take an event of type ADDED, MODIFIED or DELETED (``pkg/virt-handler/notify-server/server.go:54-124``)."""
        domain = Domain(raw)
        if kind == "DELETED":
            self._domains.pop(domain.key, None)
        else:
            self._domains[domain.key] = domain
        self._wake(domain.key)

    def lost(self, key: str, uid: str, moment: str) -> None:
        """The launcher of ``key`` is gone: its domain counts as deleted at ``moment`` (RFC 3339)."""
        self._put(key, uid, deleted=moment, status="")

    def unreachable(self, key: str, uid: str) -> None:
        """The launcher of ``key`` is there, but cannot be asked now: nothing is known of its domain."""
        if key not in self._domains:
            self._put(key, uid, deleted=None, status="Unknown")

    def _put(self, key: str, uid: str, *, deleted: str | None, status: str) -> None:
        namespace, name = split_key(key)
        raw = new_domain(
            namespace,
            name,
            metadata=make_metadata(UID=uid),
            status=make_status(Status=status),
            deletion_timestamp=deleted,
        )
        self._domains[key] = Domain(raw)
        self._wake(key)

    def _wake(self, key: str) -> None:
        self._queue.forget(key)
        self._queue.add(key)
