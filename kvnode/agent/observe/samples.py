"""Looking at every VM of the node: what its launcher measures, and what its processes use."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

import orjson

from kvnode.agent.domains import DomainStore
from kvnode.agent.errors import FAILURES
from kvnode.agent.launchers import Connection
from kvnode.agent.observe.domainstats import Sample, samples
from kvnode.agent.observe.memorywatch import Measured
from kvnode.agent.vmi import Vmi, key_of, metadata, phase_of, uid_of

AT_ONCE = 32
"""Launchers that are asked side by side."""
ANSWER = 1.5
"""Seconds that a launcher may take."""
TOGETHER = 6.0
"""Seconds that all may take: Prometheus gives up after ten."""
SLOW = 30.0
"""Seconds in which one that took too long is not asked again."""
FRESH = 1.0
"""Seconds in which one look is good for all who ask."""
LARGEST = 1 << 20
"""Bytes of an answer; a launcher that says more is not listened to."""
SPAN = 2.0
"""The shortest time over which a load is told."""


@dataclass(frozen=True, slots=True)
class Seen:
    """One VM at one moment."""

    key: str
    phase: str
    state: str
    """libvirt's, under KubeVirt's name; "" when there is no domain."""
    samples: Sequence[Sample] = ()
    """What its launcher measured; nothing when that could not be had."""
    memory: Measured | None = None
    load: float | None = None
    """Its share of one CPU, since the look before."""
    labels: Mapping[str, str] = field(default_factory=dict)
    """The VMI's own."""


class Vmis(Protocol):
    """The VMIs that are labelled with this node's name."""

    def objects(self) -> Iterable[Vmi]:
        """All of them."""


class Looker:
    """Looks at all VMs of the node. Many who ask do not make many questions."""

    def __init__(
        self,
        launchers: Callable[[], Iterable[Connection]],
        vmis: Vmis,
        domains: DomainStore,
        memory: Callable[[str], Measured | None],
        clock: Callable[[], float],
    ) -> None:
        """`memory` gives the last report about a VMI, by its UID; `clock` seconds that only grow."""
        self._launchers = launchers
        self._vmis = vmis
        self._domains = domains
        self._memory = memory
        self._clock = clock
        self._look: asyncio.Task[list[Seen]] | None = None
        self._looked = float("-inf")
        self._slow: dict[str, float] = {}
        self._before: dict[str, tuple[float, float, float | None]] = {}

    async def look(self) -> list[Seen]:
        """All VMs, by their names; one whose launcher does not answer is there with what is known without it."""
        if self._look is None or (self._look.done() and self._clock() - self._looked > FRESH):
            self._look = asyncio.ensure_future(self._ask_all())
        return await asyncio.shield(self._look)  # who asked may go; others wait for the same look

    async def _ask_all(self) -> list[Seen]:
        connections = {one.ghost.uid: one for one in self._launchers()}
        now = self._clock()
        self._slow = {uid: until for uid, until in self._slow.items() if until > now and uid in connections}
        asked = [one for uid, one in connections.items() if uid not in self._slow]
        answers: dict[str, Sequence[Sample]] = {}
        turns = asyncio.Semaphore(AT_ONCE)

        async def one(connection: Connection) -> None:
            async with turns:
                answers[connection.ghost.uid] = await self._ask(connection)

        tasks = [asyncio.ensure_future(one(connection)) for connection in asked]
        if tasks:
            _, late = await asyncio.wait(tasks, timeout=TOGETHER)
            for task in late:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
        found = self._seen({uid: one.ghost.key for uid, one in connections.items()}, answers)
        self._looked = self._clock()
        return found

    async def _ask(self, connection: Connection) -> Sequence[Sample]:
        domain = self._domains.get(connection.ghost.key)
        try:
            async with asyncio.timeout(ANSWER):
                stats = await connection.rpc.domain_stats()
                files = await connection.rpc.filesystems() if domain and domain.has_guest_agent else None
        except TimeoutError:
            self._slow[connection.ghost.uid] = self._clock() + SLOW
            return ()
        except FAILURES:
            return ()
        return samples(_decode(stats, dict), _decode(files, list))

    def _seen(self, launchers: Mapping[str, str], answers: Mapping[str, Sequence[Sample]]) -> list[Seen]:
        """The node's VMs: those with a launcher, and those that wait for one or have none any more."""
        known = {uid_of(vmi): vmi for vmi in self._vmis.objects()}
        keys = {**{uid: key_of(vmi) for uid, vmi in known.items()}, **launchers}
        self._before = {uid: kept for uid, kept in self._before.items() if uid in keys}
        found = []
        for uid, key in keys.items():
            vmi, domain = known.get(uid, {}), self._domains.get(key)
            mine = answers.get(uid, ())
            found.append(
                Seen(
                    key,
                    phase_of(vmi),
                    domain.status if domain else "",
                    mine,
                    self._memory(uid),
                    self._load(uid, mine),
                    metadata(vmi).get("labels") or {},
                )
            )
        return sorted(found, key=lambda seen: seen.key)

    def _load(self, uid: str, mine: Sequence[Sample]) -> float | None:
        used = next((value for metric, value, _ in mine if metric.name == "cpu_usage_seconds_total"), None)
        if used is None:
            return None
        now = self._clock()
        then, earlier, load = self._before.get(uid, (now, used, None))
        if now - then >= SPAN:
            load = (used - earlier) / (now - then) if used >= earlier else None
            self._before[uid] = (now, used, load)
        else:
            self._before.setdefault(uid, (now, used, None))
        return load


def _decode(text: str | None, kind: type) -> Any:
    """The answer, or an empty one where it is none."""
    if text and len(text) <= LARGEST:
        try:
            found = orjson.loads(text)
        except orjson.JSONDecodeError:
            found = None
        if isinstance(found, kind):
            return found
    return kind()
