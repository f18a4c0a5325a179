"""Rules on memory: requests, limits, the guest's share, huge pages."""

from __future__ import annotations

from kvnode.api.quantity import Quantity
from kvnode.spec.cause import shown
from kvnode.spec.validation.review import Review

_REQUEST = "domain.resources.requests.memory"
_LIMIT = "domain.resources.limits.memory"
_SMALLEST_REQUEST = Quantity("1M")


def check_memory_request(review: Review) -> None:
    """A request is not negative and at least 1M (vmi-create-admitter.go:1126)."""
    request = review.resource("requests", "memory")
    if request.value < 0:
        review.invalid(_REQUEST, f"is {request}: must not be negative")
    elif request.value > 0 and request < _SMALLEST_REQUEST:
        review.invalid(_REQUEST, f"is {request}: must be at least 1M")


def check_memory_limit(review: Review) -> None:
    """A limit is not negative, and no request exceeds it (vmi-create-admitter.go:1101)."""
    request, limit = review.resource("requests", "memory"), review.resource("limits", "memory")
    if limit.value < 0:
        review.invalid(_LIMIT, f"is {limit}: must not be negative")
    if 0 < limit.value < request.value:
        review.invalid(_REQUEST, f"is {request}: must not exceed the limit of {limit}")


def check_hugepages(review: Review) -> None:
    """The page size is a quantity, and memory a multiple of it (vmi-create-admitter.go:1049).

    A page size of zero, on which the reference fails, is refused like a malformed one.
    """
    hugepages = (review.memory or {}).get("hugepages")
    if hugepages is None:
        return
    text = hugepages.get("pageSize", "")
    try:
        size = Quantity(text).value
    except ValueError:
        size = 0
    if size <= 0:
        message = f"is {shown(text)}: must be the size of a huge page, such as 2Mi or 1Gi"
        review.invalid("domain.memory.hugepages.pageSize", message)
        return
    memory = (
        review.resource("requests", "memory").value
        or review.guest_memory.value
        or review.resource("limits", "memory").value
    )
    if memory != 0 and memory < size:
        review.invalid(_REQUEST, f"is {memory} bytes: must be at least one huge page of {text}")
    elif memory % size:
        review.invalid(_REQUEST, f"is {memory} bytes: must be a multiple of the huge page size {text}")


def check_guest_memory(review: Review) -> None:
    """The guest fits in the limit, unless VMs are updated live (vmi-create-admitter.go:1024)."""
    guest, limit = review.guest_memory, review.resource("limits", "memory")
    if not review.config.live_update and limit.value != 0 and limit.value < guest.value:
        review.invalid("domain.memory.guest", f"is {guest}: must not exceed the memory limit of {limit}")


def check_memory_given(review: Review) -> None:
    """Memory is asked for in some way (vmi-create-admitter.go:1225; its cause names no field)."""
    memory = review.memory or {}
    given = "guest" in memory or "hugepages" in memory
    if review.resource("requests", "memory").value == 0 and not given:
        review.required("domain.memory.guest", f"or memory.hugepages or {_REQUEST} must say how much memory")


def check_reserved_overhead(review: Review) -> None:
    """Reserving overhead needs its feature gate (vmi-create-admitter.go:2133)."""
    reserved = (review.memory or {}).get("reservedOverhead")
    if reserved is not None and not review.config.gate("ReservedOverheadMemlock"):
        review.invalid("domain.memory.reservedOverhead", "needs the feature gate ReservedOverheadMemlock")


RULES = (
    check_memory_request,
    check_memory_limit,
    check_hugepages,
    check_guest_memory,
    check_memory_given,
    check_reserved_overhead,
)
