"""The domains that launchers tell of, and how their news reach the queue."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Protocol

from kvnode.agent.domain import UNKNOWN, Domain
from kvnode.agent.errors import AgentError
from kvnode.agent.ghost import Ghost
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
        self._awaited: dict[str, asyncio.Event] = {}

    def get(self, key: str) -> Domain | None:
        """The last that was heard; one that is deleted says so itself."""
        return self._domains.get(key)

    def delete(self, key: str) -> None:
        """Forget it; nothing is put into the queue."""
        self._domains.pop(key, None)

    async def deletion(self, key: str, seconds: float) -> None:
        """Wait until the launcher has told that the domain is gone, for ``seconds`` at most."""
        try:
            async with asyncio.timeout(seconds):
                while key in self._domains:
                    await self._awaited.setdefault(key, asyncio.Event()).wait()
        except TimeoutError:
            self._awaited.pop(key, None)

    def __iter__(self) -> Iterator[Domain]:
        return iter(list(self._domains.values()))

    def heard(self, kind: str, raw: Mapping[str, Any], sender: Ghost) -> None:
        """Take an event of type ADDED, MODIFIED or DELETED (``pkg/virt-handler/notify-server/server.go:54-124``).

        Raises:
            AgentError: the launcher that ``sender`` stands for speaks of a VM that is not its own.
        """
        domain = Domain(raw)
        if domain.key != sender.key or domain.uid not in ("", sender.uid):
            raise AgentError(
                f"the launcher of {sender.key} ({sender.uid}) may not speak of {domain.key} ({domain.uid})"
            )
        if kind == "DELETED":
            self._domains.pop(domain.key, None)
            if (awaited := self._awaited.pop(domain.key, None)) is not None:
                awaited.set()
        else:
            self._domains[domain.key] = domain
        self._wake(domain.key)

    def expect(self, ghosts: Iterable[Ghost]) -> None:
        """At the agent's start: of these launchers nothing is known until they have been asked.

        As long as that is so no pass says anything about their VMs, whatever their status is.
        """
        for ghost in ghosts:
            self._domains.setdefault(ghost.key, _unknown(ghost.key, ghost.uid))

    def absent(self, key: str) -> None:
        """The launcher of ``key`` has been asked, and has no domain."""
        self._domains.pop(key, None)
        self._wake(key)

    def lost(self, key: str, uid: str, moment: str) -> None:
        """The launcher of ``key`` is gone: its domain counts as deleted at ``moment`` (RFC 3339)."""
        self._domains[key] = _bare(key, uid, deleted=moment, status="")
        self._wake(key)

    def unreachable(self, key: str, uid: str) -> None:
        """The launcher of ``key`` is there, but cannot be asked now: nothing is known of its domain."""
        if key not in self._domains:
            self._domains[key] = _unknown(key, uid)
            self._wake(key)

    def _wake(self, key: str) -> None:
        self._queue.forget(key)
        self._queue.add(key)


def _unknown(key: str, uid: str) -> Domain:
    return _bare(key, uid, deleted=None, status=UNKNOWN)


def _bare(key: str, uid: str, *, deleted: str | None, status: str) -> Domain:
    namespace, name = split_key(key)
    raw = new_domain(
        namespace,
        name,
        metadata=make_metadata(UID=uid),
        status=make_status(Status=status),
        deletion_timestamp=deleted,
    )
    return Domain(raw)
