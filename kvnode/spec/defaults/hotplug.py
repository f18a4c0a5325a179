"""Room for CPUs and memory to be plugged in later (``pkg/defaults/defaults.go:84-148``)."""

from __future__ import annotations

from typing import Any

from kvnode.api.quantity import Quantity
from kvnode.spec.config import ClusterConfig

MAX_VCPUS = 512
"""Most vCPUs that the ratio brings a VM to; more must be asked for."""

BLOCK = 2 * 2**20
"""Bytes in a block of pluggable memory: a huge page of the usual size."""

GIGANTIC_BLOCK = 2**30
"""Bytes in a block on 1Gi huge pages."""

SMALLEST_GUEST = 2**30
"""Bytes below which a guest gets no pluggable memory."""

_UINT32 = 2**32


def prepare_hotplug(spec: dict[str, Any], config: ClusterConfig) -> None:
    """Set ``cpu.maxSockets`` and ``memory.maxGuest``, unless they are set or nothing can be plugged in."""
    _set_max_sockets(spec["domain"]["cpu"], config)
    memory = spec["domain"]["memory"]
    if "maxGuest" not in memory:
        most = _max_guest(memory, config)
        if most is not None and plugging_fault(spec, most) is None:
            memory["maxGuest"] = str(most)


def _set_max_sockets(cpu: dict[str, Any], config: ClusterConfig) -> None:
    """The cluster's most sockets, but at least those there are; else the ratio times the sockets."""
    if cpu.get("maxSockets"):
        return
    sockets, per_socket = cpu.get("sockets", 0), cpu.get("cores", 0) * cpu.get("threads", 0) % _UINT32
    if config.max_cpu_sockets:
        most = max(config.max_cpu_sockets, sockets)
    else:
        most = sockets * config.max_hotplug_ratio % _UINT32
        if most * per_socket % _UINT32 > MAX_VCPUS:
            most = max(MAX_VCPUS // per_socket, sockets)
    if most:
        cpu["maxSockets"] = most


def _max_guest(memory: dict[str, Any], config: ClusterConfig) -> Quantity | None:
    if config.max_guest is not None:
        return config.max_guest
    if "guest" not in memory:
        return None
    most = Quantity(memory["guest"]).value * config.max_hotplug_ratio
    return Quantity.from_bytes(most) if abs(most) < 2**63 else None


def plugging_fault(spec: dict[str, Any], most: Quantity) -> str | None:
    """Why a VM cannot take memory plugged in up to `most`; None if it can
    (``pkg/liveupdate/memory/memory.go:56-99``).
    """
    domain = spec["domain"]
    cpu, memory = domain.get("cpu", {}), domain.get("memory", {})
    if "guest" not in memory:
        return "memory.guest must be set"
    for what, there in (
        ("cpu.realtime", "realtime" in cpu),
        ("cpu.numa.guestMappingPassthrough", "guestMappingPassthrough" in cpu.get("numa", ())),
        ("launchSecurity", "launchSecurity" in domain),
    ):
        if there:
            return f"no memory is plugged into a VM with {what}"
    if spec["architecture"] != "amd64":
        return "memory is plugged on amd64 alone"
    gigantic = memory.get("hugepages", {}).get("pageSize") == "1Gi"
    block = GIGANTIC_BLOCK if gigantic else BLOCK
    guest = Quantity(memory["guest"])
    if guest > most:
        return "memory.guest must not be more than memory.maxGuest"
    if guest.value % block or most.value % block:
        return f"memory.guest and memory.maxGuest must be multiples of {'1Gi' if gigantic else '2Mi'}"
    if guest.value < SMALLEST_GUEST:
        return "memory.guest must be at least 1Gi"
    return None
