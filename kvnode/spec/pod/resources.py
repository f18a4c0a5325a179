"""What the compute container requests and is limited to (``renderresources.go``, in the order of ``template.go:1644``).

Amounts that follow from the VMI are laid under those that it names itself, so that these win.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from kvnode.api.quantity import Quantity
from kvnode.spec.pod.cpu import request_pinned_cpus, request_shared_cpus
from kvnode.spec.pod.hostdevices import node_devices, passed_through, resource_claims
from kvnode.spec.pod.source import PodSource

Amounts = dict[str, Quantity]

EPHEMERAL_STORAGE = Quantity("50M")
"""Disk space for the launcher's own files."""

ZERO = Quantity("0")
_ALL = 100


@dataclass(slots=True)
class ComputeResources:
    """Requests and limits while they are worked out."""

    requests: Amounts
    """Those that the VMI names, and those worked out from them."""
    limits: Amounts
    implied_requests: Amounts = field(default_factory=dict)
    """Those that count where `requests` has none."""
    implied_limits: Amounts = field(default_factory=dict)

    def as_dict(self) -> dict[str, Any]:
        """As a container has them."""
        return {
            "requests": _texts(self.implied_requests | self.requests),
            "limits": _texts(self.implied_limits | self.limits),
        }


def compute_resources(source: PodSource) -> dict[str, Any]:
    """``resources`` of the compute container.

    Raises:
        FieldError: a host device is not permitted in this cluster.
    """
    own = source.domain.get("resources", {})
    amounts = ComputeResources(_quantities(own.get("requests", {})), _quantities(own.get("limits", {})))
    _add_ephemeral_storage(amounts)
    amounts.limits |= dict.fromkeys(node_devices(source), Quantity("1"))
    if not amounts.requests.get("memory", ZERO):
        _request_guest_memory(amounts, source)
    if source.dedicated_cpus:
        request_pinned_cpus(amounts.requests, amounts.limits, source)
    else:
        implied = request_shared_cpus(source)
        amounts.implied_requests |= implied.requests
        amounts.implied_limits |= implied.limits
    if "hugepages" in source.domain.get("memory", ()):
        _move_guest_to_hugepages(amounts, source)
    else:
        _add_overhead(amounts, source)
    _limit_memory(amounts, source)
    for name in passed_through(source):
        for kind in (amounts.implied_requests, amounts.implied_limits):
            kind[name] = kind.get(name, ZERO) + Quantity("1")
    claims = resource_claims(source)
    return amounts.as_dict() | ({"claims": claims} if claims else {})


def _add_ephemeral_storage(amounts: ComputeResources) -> None:
    name = "ephemeral-storage"
    amounts.requests[name] = amounts.requests.get(name, ZERO) + EPHEMERAL_STORAGE
    if name in amounts.limits:
        amounts.limits[name] += EPHEMERAL_STORAGE


def _request_guest_memory(amounts: ComputeResources, source: PodSource) -> None:
    """Without a memory request: the limit, or the guest's memory less what the cluster overcommits.

    Huge pages cannot be overcommitted: the guest needs every one, so they are requested in full, where the
    reference asks for too few (``renderresources.go:263``).
    """
    limit = amounts.limits.get("memory", ZERO)
    if limit:
        amounts.requests["memory"] = limit
    if "memory" in amounts.requests:
        return
    memory = source.domain.get("memory", {})
    hugepages = "hugepages" in memory
    guest = _guest_memory(memory)
    if guest is None or guest.value <= 0:
        return
    overcommit = _ALL if hugepages else source.config.memory_overcommit
    part = guest if overcommit == _ALL else guest.with_value(guest.value * _ALL // overcommit)
    amounts.requests["memory"] = part


def _guest_memory(memory: Mapping[str, Any]) -> Quantity | None:
    if "guest" in memory:
        return Quantity(memory["guest"])
    try:
        return Quantity(memory.get("hugepages", {}).get("pageSize", ""))
    except ValueError:
        return None


def _move_guest_to_hugepages(amounts: ComputeResources, source: PodSource) -> None:
    """The guest's memory in huge pages; as ordinary memory the overhead, and what exceeds the guest's.

    ``renderresources.go:220``
    """
    memory = source.domain["memory"]
    pages = f"hugepages-{memory['hugepages'].get('pageSize', '')}"
    request = amounts.requests.get("memory", Quantity.from_bytes(0))
    guest = Quantity(memory["guest"]) if "guest" in memory else None
    in_pages = guest if guest is not None and request.value > guest.value else request
    amounts.implied_requests[pages] = amounts.implied_limits[pages] = in_pages
    amounts.requests["memory"] = _beyond(request, guest) + source.overhead
    if "memory" in amounts.limits:
        amounts.limits["memory"] = _beyond(amounts.limits["memory"], guest) + source.overhead


def _beyond(amount: Quantity, guest: Quantity | None) -> Quantity:
    return amount - guest if guest is not None and amount.value > guest.value else ZERO


def _add_overhead(amounts: ComputeResources, source: PodSource) -> None:
    """The overhead on top of the request, unless that is overcommitted, and on top of a limit."""
    request = amounts.requests.get("memory", ZERO)
    overcommitted = source.domain.get("resources", {}).get("overcommitGuestOverhead", False)
    amounts.requests["memory"] = request if overcommitted else request + source.overhead
    if "memory" in amounts.limits:
        amounts.limits["memory"] += source.overhead


def _limit_memory(amounts: ComputeResources, source: PodSource) -> None:
    """The limit that a quota of the namespace requires, where the VMI names none."""
    ratio = source.surroundings.auto_memory_limit_ratio
    if ratio is None or "memory" in source.domain.get("resources", {}).get("limits", {}):
        return
    request = amounts.requests["memory"]
    amounts.implied_limits["memory"] = request.with_value(int(float(request.value) * ratio))


def _quantities(amounts: Mapping[str, str]) -> Amounts:
    return {name: Quantity(amount) for name, amount in amounts.items()}


def _texts(amounts: Amounts) -> dict[str, str]:
    return {name: str(amount) for name, amount in amounts.items()}
