"""Rules on CPUs: requests, limits, pinning, NUMA, real time, features, hotplug."""

from __future__ import annotations

from kvnode.spec.cause import shown
from kvnode.spec.validation.review import Review, vcpu_count

_CPU = "domain.cpu"
_DEDICATED = "domain.cpu.dedicatedCpuPlacement"
_NUMA = "domain.cpu.numa.guestMappingPassthrough"
_REQUEST = "domain.resources.requests.cpu"
_LIMIT = "domain.resources.limits.cpu"
_POLICIES = ("force", "require", "optional", "disable", "forbid")


def check_cpu_resources(review: Review) -> None:
    """Neither side is negative, and the request fits the limit (vmi-create-admitter.go:955-993)."""
    request, limit = review.resource("requests", "cpu"), review.resource("limits", "cpu")
    if request.milli_value < 0:
        review.invalid(_REQUEST, f"is {request}: must not be negative")
    if limit.milli_value < 0:
        review.invalid(_LIMIT, f"is {limit}: must not be negative")
    if 0 < limit.milli_value < request.milli_value:
        review.invalid(_REQUEST, f"is {request}: must not exceed the limit of {limit}")


def check_pinning(review: Review) -> None:
    """What dedicated CPUs need of the memory and CPU resources (vmi-create-admitter.go:718-950)."""
    if not review.dedicated_cpus:
        return
    _check_pinned_memory(review)
    request, limit = review.resource("requests", "cpu"), review.resource("limits", "cpu")
    for path, quantity in ((_REQUEST, request), (_LIMIT, limit)):
        if quantity.value > 0 and quantity.value * 1000 != quantity.milli_value:
            review.invalid(path, f"is {quantity}: must be a whole number of CPUs with {_DEDICATED}")
    vcpus = vcpu_count(review.cpu)
    if request.value == 0 and limit.value == 0 and vcpus == 0:
        review.invalid(_DEDICATED, f"needs a number of CPUs: set {_CPU}.cores, or {_LIMIT}")
    if request.value > 0 and limit.value > 0 and request.value != limit.value:
        review.invalid(_DEDICATED, f"needs {_REQUEST} and {_LIMIT} to be equal")
    if (request.value > 0 or limit.value > 0) and vcpus > 0 and vcpus not in (request.value, limit.value):
        review.invalid(
            _DEDICATED,
            f"needs the CPU resources to equal the {vcpus} vCPUs of {_CPU}, or only one of them to be set",
        )
    _check_pinned_threads(review)


def _check_pinned_memory(review: Review) -> None:
    """Memory is given, and its request equals its limit (vmi-create-admitter.go:878,918)."""
    request, limit = review.resource("requests", "memory"), review.resource("limits", "memory")
    memory = review.memory or {}
    given = limit.value or request.value or "hugepages" in memory or review.guest_memory.value
    if not given:
        review.invalid(
            "domain.resources.limits.memory",
            f"must say how much memory with {_DEDICATED}; domain.memory.guest or .hugepages would do too",
        )
    if request.value > 0 and limit.value > 0 and request.value != limit.value:
        path = "domain.resources.requests.memory"
        review.invalid(path, f"is {request}: must equal the limit of {limit} with {_DEDICATED}")


def _check_pinned_threads(review: Review) -> None:
    """At most two threads a core, one on arm64 (vmi-create-admitter.go:769,792)."""
    threads = (review.cpu or {}).get("threads", 0)
    if threads > 1 and review.architecture == "arm64":
        review.invalid("architecture", f"is arm64: {_CPU}.threads must be 1 there, not {threads}")
    if threads > 2:
        review.invalid(_DEDICATED, f"allows at most 2 threads a core: {_CPU}.threads is {threads}")


def check_numa(review: Review) -> None:
    """NUMA passthrough needs dedicated CPUs and huge pages (vmi-create-admitter.go:734)."""
    if _guest_mapping(review) is None:
        return
    if not review.config.gate("NUMA"):
        review.invalid(_NUMA, "needs the feature gate NUMA")
    if not review.dedicated_cpus:
        review.invalid(_NUMA, f"needs {_DEDICATED} to be true")
    if (review.memory or {}).get("hugepages") is None:
        review.invalid(_NUMA, "needs domain.memory.hugepages")


def _guest_mapping(review: Review) -> object:
    return ((review.cpu or {}).get("numa") or {}).get("guestMappingPassthrough")


def check_emulator_thread(review: Review) -> None:
    """An isolated emulator thread needs dedicated CPUs (vmi-create-admitter.go:706)."""
    if (review.cpu or {}).get("isolateEmulatorThread") and not review.dedicated_cpus:
        review.invalid(f"{_CPU}.isolateEmulatorThread", f"needs {_DEDICATED} to be true")


def check_features(review: Review) -> None:
    """Policies of CPU features (vmi-create-admitter.go:690)."""
    for index, feature in enumerate((review.cpu or {}).get("features", [])):
        policy = feature.get("policy", "")
        if policy and policy not in _POLICIES:
            review.not_supported(
                f"{_CPU}.features[{index}].policy",
                f"is {shown(policy)}: use one of {', '.join(_POLICIES)}",
            )


def check_model_arm64(review: Review) -> None:
    """arm64 has the host's CPU only (arm64.go:77)."""
    model = (review.cpu or {}).get("model", "")
    if review.architecture == "arm64" and model not in ("", "host-passthrough"):
        review.not_supported(f"{_CPU}.model", f"is {shown(model)}: must be host-passthrough on arm64")


def check_hotplug(review: Review) -> None:
    """Sockets do not exceed their maximum (vmi-create-admitter.go:2041)."""
    cpu = review.cpu or {}
    sockets, most = cpu.get("sockets", 0), cpu.get("maxSockets", 0)
    if most and sockets > most:
        review.invalid(f"{_CPU}.sockets", f"is {sockets}: must not exceed maxSockets, which is {most}")


def check_realtime(review: Review) -> None:
    """Real-time vCPUs need dedicated CPUs and NUMA passthrough (vmi-create-admitter.go:1173-1210)."""
    if (review.cpu or {}).get("realtime") is None:
        return
    if not review.dedicated_cpus:
        review.required(_DEDICATED, f"must be true with {_CPU}.realtime")
    if _guest_mapping(review) is None:
        review.required(_NUMA, f"must be set with {_CPU}.realtime")


RULES = (
    check_cpu_resources,
    check_pinning,
    check_numa,
    check_emulator_thread,
    check_features,
    check_model_arm64,
    check_hotplug,
    check_realtime,
)
