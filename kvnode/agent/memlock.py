"""How much memory a VM's QEMU may lock, and saying so to its process.

``pkg/hypervisor/kvm/runtime.go:57-157``
"""

from __future__ import annotations

import resource
from collections.abc import Iterable
from typing import Any

from kvnode.agent.errors import AgentError
from kvnode.agent.vmi import Vmi, devices, interfaces, is_running, is_sev, spec, status
from kvnode.api.quantity import Quantity
from kvnode.spec.config import ClusterConfig
from kvnode.spec.overhead import memory_overhead

_KILO = 1000


def passed_through(vmi: Vmi) -> int:
    """How many host devices reach the guest's memory by themselves."""
    found = devices(vmi)
    sriov = [one for one in interfaces(vmi) if one.get("sriov") is not None]
    return len(found.get("gpus") or ()) + len(found.get("hostDevices") or ()) + len(sriov)


def locks_memory(vmi: Vmi) -> bool:
    """Whether the VM needs a higher limit than a container has."""
    domain = spec(vmi).get("domain") or {}
    overhead = (domain.get("memory") or {}).get("reservedOverhead") or {}
    realtime = (domain.get("cpu") or {}).get("realtime") is not None
    return passed_through(vmi) > 0 or realtime or is_sev(vmi) or overhead.get("memLock") == "Required"


def memlock_bytes(vmi: Vmi, architecture: str, config: ClusterConfig) -> int:
    """The limit in bytes: what QEMU itself needs, and the guest's memory once for each device.

    Raises:
        AgentError: a size in the VMI is none.
    """
    try:
        told = (status(vmi).get("migrationState") or {}).get("targetMemoryOverhead")
        if told is None:
            ratio = config.additional_guest_memory_overhead_ratio
            overhead = memory_overhead(vmi, architecture, ratio)
        else:
            overhead = Quantity.from_json(told).value
        base = _base(vmi)
    except ValueError as error:
        raise AgentError(f"limit of locked memory: {error}") from error
    # The reference adds the guest's memory in thousands of bytes, rounded up.
    return overhead + -(-base // _KILO) * _KILO + max(0, passed_through(vmi) - 1) * base


def _base(vmi: Vmi) -> int:
    domain: dict[str, Any] = spec(vmi).get("domain") or {}
    memory = domain.get("memory") or {}
    requested = ((domain.get("resources") or {}).get("requests") or {}).get("memory")
    if memory.get("maxGuest") is not None:
        return Quantity.from_json(memory["maxGuest"]).value
    if requested is not None and (size := Quantity.from_json(requested).value):
        return size
    return Quantity.from_json(memory["guest"]).value if memory.get("guest") is not None else 0


def target_process(vmi: Vmi, processes: Iterable[tuple[int, str]]) -> int | None:
    """PID of the process whose limit counts: QEMU's once it runs, before that the daemon's that starts it.

    Raises:
        AgentError: the VM runs, and there is no QEMU.
    """
    state = status(vmi).get("migrationState")
    # Of a VM on its way here the phase is that of the other node's guest.
    awaited = state is not None and not state.get("targetNodeDomainDetected")
    if is_running(vmi) and not awaited:
        for pid, name in processes:
            if name.startswith("qemu"):
                return pid
        raise AgentError("limit of locked memory: the VM has no QEMU process")
    return next((pid for pid, name in processes if name == "virtqemud"), None)


def set_memlock(pid: int, size: int) -> None:
    """Set a process' limit of locked memory, soft and hard; raises AgentError."""
    try:
        resource.prlimit(pid, resource.RLIMIT_MEMLOCK, (size, size))
    except ProcessLookupError as error:
        raise AgentError(f"limit of locked memory: process {pid} is gone") from error
    except (OSError, ValueError, OverflowError) as error:
        raise AgentError(
            f"limit of locked memory of process {pid} cannot be set to {size} bytes: {error}; "
            "the agent needs CAP_SYS_RESOURCE"
        ) from error
