"""A pod's memory, term by term, and where the sum is known to fall short."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from kvnode.api.quantity import Quantity
from kvnode.spec.cause import Cause
from kvnode.spec.config import ClusterConfig
from kvnode.spec.overhead import Term, memory_overhead_terms
from kvnode.spec.pod.resources import compute_resources
from kvnode.spec.pod.settings import LauncherSettings, Surroundings
from kvnode.spec.pod.source import PodSource

SHORTFALL = "MemoryShortfall"
"""Reason of a warning: the pod may need more memory than it requests."""

_REQUESTED = "spec.domain.resources.requests.memory"
_LIMITED = "spec.domain.resources.limits.memory"
_GUEST = "spec.domain.memory.guest"
_OVERCOMMITTED = "spec.domain.resources.overcommitGuestOverhead"
_OPTIONAL = LauncherSettings()
_ORDINARY = Surroundings()


@dataclass(frozen=True, slots=True)
class MemoryAccount:
    """Memory of the compute container, bytes."""

    terms: tuple[Term, ...]
    """The guest's part, then the overhead's; they add up to `request`."""
    request: int
    limit: int | None
    """None: the pod may use what the node has."""
    hugepages: Mapping[str, int]
    """Huge pages requested, by resource (``hugepages-2Mi``); not part of `request`."""
    warnings: tuple[Cause, ...]
    """Where the sum is known to fall short."""


def explain_memory(
    vmi: Mapping[str, Any],
    architecture: str,
    config: Mapping[str, Any] | ClusterConfig | None = None,
    *,
    settings: LauncherSettings = _OPTIONAL,
    surroundings: Surroundings = _ORDINARY,
) -> MemoryAccount:
    """The memory that `kvnode.render_launcher_pod` lets the pod of a VMI request, term by term.

    Raises:
        FieldError: as `kvnode.render_launcher_pod`, for what concerns resources.
    """
    source = PodSource.read(vmi, architecture, config, None, settings=settings, surroundings=surroundings)
    resources = compute_resources(source)
    request = Quantity(resources["requests"].get("memory", "0")).value
    limit = resources["limits"].get("memory")
    pages = {k: Quantity(v).value for k, v in resources["requests"].items() if k.startswith("hugepages-")}
    overhead = list(source.overhead_terms)
    if _overhead_left_out(source):
        total = -sum(term.bytes for term in overhead)
        overhead.append(
            Term("overcommitted", total, "the VM asks that its overhead is not requested", _OVERCOMMITTED)
        )
    guest = request - sum(term.bytes for term in overhead)
    terms = [_guest_term(source, guest), *overhead] if guest else overhead
    return MemoryAccount(
        tuple(terms),
        request,
        None if limit is None else Quantity(limit).value,
        pages,
        tuple(_shortfalls(source)),
    )


def _overhead_left_out(source: PodSource) -> bool:
    left_out = source.domain.get("resources", {}).get("overcommitGuestOverhead", False)
    return bool(left_out) and "hugepages" not in source.domain.get("memory", ())


def _guest_term(source: PodSource, size: int) -> Term:
    """Where the part of the request that is not overhead comes from."""
    resources, memory = source.domain.get("resources", {}), source.domain.get("memory", {})
    if "hugepages" in memory:
        return Term("beyond-hugepages", size, "what is requested beyond the guest's huge pages", _REQUESTED)
    if Quantity(resources.get("requests", {}).get("memory", "0")):
        return Term("guest", size, "requested by the VM", _REQUESTED)
    if Quantity(resources.get("limits", {}).get("memory", "0")):
        return Term("guest", size, "the VM's limit, as it requests nothing", _LIMITED)
    percent = source.config.memory_overcommit
    if percent == 100:
        return Term("guest", size, "the guest's memory", _GUEST)
    return Term(
        "guest", size, f"the guest's memory, which is {percent} per cent of what is requested", _GUEST
    )


def _shortfalls(source: PodSource) -> list[Cause]:
    causes = []
    missing = _missing_page_tables(source)
    if missing:
        causes.append(
            Cause(
                _GUEST,
                SHORTFALL,
                f"up to {Quantity.from_bytes(missing)} of page tables are not requested, as those of"
                " resources.requests.memory alone are counted: request as much memory as the guest has",
            )
        )
    if source.guaranteed:
        field = "spec.domain.cpu.dedicatedCpuPlacement" if source.dedicated_cpus else "spec.domain.resources"
        message = (
            "the pod may use no more than it requests: whatever the estimate lacks gets QEMU killed;"
            " memory.reservedOverhead.addedOverhead adds to it"
        )
        causes.append(Cause(field, SHORTFALL, message))
    if _overhead_left_out(source):
        message = (
            f"{source.overhead.value} bytes of overhead are not requested: the node may run out of memory"
        )
        causes.append(Cause(_OVERCOMMITTED, SHORTFALL, message))
    return causes


def _missing_page_tables(source: PodSource) -> int:
    """Page tables of the guest beyond those that are counted; a guest in huge pages has next to none."""
    if "hugepages" in source.domain.get("memory", ()):
        return 0
    complete = memory_overhead_terms(source.vmi, source.architecture, guest_page_tables=True)
    return _tables(complete) - _tables(source.overhead_terms)


def _tables(terms: list[Term]) -> int:
    return sum(term.bytes for term in terms if term.name == "page-tables")
