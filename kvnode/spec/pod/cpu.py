"""CPUs that the compute container requests (``renderresources.go:119-147,319-361``)."""

from __future__ import annotations

from dataclasses import dataclass, field

from kvnode.api.names import EMULATOR_THREAD_COMPLETE_TO_EVEN_PARITY_ANNOTATION
from kvnode.api.quantity import Quantity
from kvnode.spec.overhead import topology_vcpus
from kvnode.spec.pod.source import PodSource


@dataclass(slots=True)
class SharedCpus:
    """CPU of a VM that shares its CPUs with others, where it names no amounts itself."""

    requests: dict[str, Quantity] = field(default_factory=dict)
    limits: dict[str, Quantity] = field(default_factory=dict)


def request_shared_cpus(source: PodSource) -> SharedCpus:
    """A tenth of each vCPU and I/O thread, or another part; a limit of a whole one if a quota requires it."""
    made = SharedCpus()
    vcpus = topology_vcpus(source.domain["cpu"]) if "cpu" in source.domain else 1
    total = vcpus + _pool_threads(source)
    if not total:
        return made
    made.requests["cpu"] = _quantity_of(total / source.config.cpu_allocation_ratio)
    if source.surroundings.auto_cpu_limit and "cpu" not in source.domain.get("resources", {}).get(
        "limits", {}
    ):
        made.limits["cpu"] = Quantity(total)
    return made


def request_pinned_cpus(
    requests: dict[str, Quantity], limits: dict[str, Quantity], source: PodSource
) -> None:
    """A CPU for each vCPU and I/O thread of the pool, and for the emulator if it has its own.

    Whatever the VMI says itself gives way: the pod must be of the Guaranteed class, so that memory is limited
    to the request, too.
    """
    cpu = source.domain["cpu"]
    pool = _pool_threads(source)
    vcpus = topology_vcpus(cpu)
    if vcpus:
        requests["cpu"] = limits["cpu"] = Quantity.from_bytes(vcpus + pool)
    else:
        for amounts in (limits, requests):
            if "cpu" in amounts:
                amounts["cpu"] += Quantity.from_bytes(pool)
    if cpu.get("isolateEmulatorThread", False):
        used = limits.get("cpu", Quantity.from_bytes(0))
        emulator = Quantity.from_bytes(_emulator_cpus(used.value, source))
        limits["cpu"] = used + emulator
        if "cpu" in requests:
            requests["cpu"] += emulator
    if "memory" in requests:
        limits["memory"] = requests["memory"]


def _emulator_cpus(used: int, source: PodSource) -> int:
    """One, or two where an annotation wants an even total, which whole cores of two threads make.

    `used` has the I/O threads of the pool already. The reference counts them twice, and its total is odd where
    their number is (``renderresources.go:344``).
    """
    to_even = EMULATOR_THREAD_COMPLETE_TO_EVEN_PARITY_ANNOTATION in source.annotations
    return 2 if to_even and used % 2 == 0 else 1


def _pool_threads(source: PodSource) -> int:
    return int(source.domain.get("ioThreads", {}).get("supplementalPoolThreadCount", 0))


def _quantity_of(cpus: float) -> Quantity:
    """CPUs as a quantity: thousandths below one."""
    return Quantity(f"{cpus * 1000!r}m") if cpus < 1 else Quantity(cpus)
