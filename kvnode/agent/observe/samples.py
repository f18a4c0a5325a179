"""Looking at every VM of the node: what its launcher measures, and what its processes use."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import orjson

from kvnode.agent.domain import Domain
from kvnode.agent.domains import DomainStore
from kvnode.agent.errors import FAILURES
from kvnode.agent.launchers import Connection
from kvnode.agent.parts import Vmis
from kvnode.agent.status.fields import libvirt_quantity
from kvnode.agent.vmi import Vmi, phase_of
from kvnode.api.quantity import Quantity
from kvnode.memory.measure import Guest, measure
from kvnode.memory.report import MemoryReport
from kvnode.spec.overhead import memory_overhead_terms

AT_ONCE = 3
"""Launchers that are asked side by side (``cmd/virt-handler/virt-handler.go:94-121``)."""


@dataclass(frozen=True, slots=True)
class Seen:
    """One VM at one moment."""

    key: str
    phase: str
    state: str
    """libvirt's, under KubeVirt's name; "" when there is no domain."""
    stats: Mapping[str, Any]
    """``DomainStats``; empty when they could not be had."""
    memory: MemoryReport | None

    @property
    def cpu_seconds(self) -> float | None:
        """CPU time so far."""
        cpu = self.stats.get("Cpu")
        if not isinstance(cpu, Mapping) or not cpu.get("TimeSet") or not isinstance(cpu.get("Time"), int):
            return None
        return float(cpu["Time"]) / 1e9


class Looker:
    """Looks at all VMs whose launchers are connected."""

    def __init__(
        self,
        launchers: Callable[[], Iterable[Connection]],
        vmis: Vmis,
        domains: DomainStore,
        architecture: str,
    ) -> None:
        """`architecture` is the node's, by Kubernetes' name."""
        self._launchers = launchers
        self._vmis = vmis
        self._domains = domains
        self._architecture = architecture
        self._lock = asyncio.Lock()

    async def look(self) -> list[Seen]:
        """All VMs, by their names; one that cannot be asked is there with what is known without it."""
        async with self._lock:  # many who ask must not make many questions
            turns = asyncio.Semaphore(AT_ONCE)

            async def one(connection: Connection) -> Seen:
                async with turns:
                    return await self._look_at(connection)

            found = await asyncio.gather(*(one(connection) for connection in self._launchers()))
        return sorted(found, key=lambda seen: seen.key)

    async def _look_at(self, connection: Connection) -> Seen:
        key = connection.ghost.key
        vmi = self._vmis.get(key)
        domain = self._domains.get(key)
        stats: Mapping[str, Any] = {}
        try:
            found = orjson.loads(await connection.rpc.domain_stats() or "{}")
            stats = found if isinstance(found, dict) else {}
        except (*FAILURES, orjson.JSONDecodeError):
            pass  # the VM is shown without
        memory = await asyncio.to_thread(self._measure, connection, vmi, domain) if vmi else None
        return Seen(key, phase_of(vmi or {}), domain.status if domain else "", stats, memory)

    def _measure(self, connection: Connection, vmi: Vmi, domain: Domain | None) -> MemoryReport | None:
        ghost = connection.ghost
        kind = domain.spec("Type") if domain else ""
        guest = Guest(ghost.namespace, ghost.name, str(kind or ""), _ram(domain))
        try:
            terms = memory_overhead_terms(vmi, self._architecture)
            return measure(connection.household.monitor, guest, terms)
        except (ValueError, OSError):
            return None


def _ram(domain: Domain | None) -> tuple[int, ...]:
    value, unit = (domain.spec("Memory", "Value"), domain.spec("Memory", "Unit")) if domain else (None, None)
    size = libvirt_quantity(value, str(unit)) if isinstance(value, int) and value else None
    return (Quantity(size).value,) if size else ()
