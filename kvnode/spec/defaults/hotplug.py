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
        if most is not None and _can_plug_memory(spec, most):
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


def _can_plug_memory(spec: dict[str, Any], most: Quantity) -> bool:
    """Whether the VM can take pluggable memory at all (``pkg/liveupdate/memory/memory.go:56-99``)."""
    domain = spec["domain"]
    cpu, memory = domain["cpu"], domain["memory"]
    if spec["architecture"] != "amd64" or "guest" not in memory:
        return False
    if "realtime" in cpu or "guestMappingPassthrough" in cpu.get("numa", ()) or "launchSecurity" in domain:
        return False
    gigantic = memory.get("hugepages", {}).get("pageSize") == "1Gi"
    block = GIGANTIC_BLOCK if gigantic else BLOCK
    guest = Quantity(memory["guest"])
    aligned = guest.value % block == 0 and most.value % block == 0
    return guest <= most and aligned and guest.value >= SMALLEST_GUEST
