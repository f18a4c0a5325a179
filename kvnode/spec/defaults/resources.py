"""CPU request, guest memory and CPU topology (``pkg/defaults/defaults.go:246-346``)."""

from __future__ import annotations

from typing import Any

from kvnode.api.quantity import Quantity
from kvnode.spec.config import ClusterConfig

BUILT_IN_CPU_REQUEST = Quantity("100m")
"""A cluster with this request (the default) leaves VMs without one; the pod gets its own."""


def default_cpu_request(domain: dict[str, Any], config: ClusterConfig) -> None:
    """Request as much CPU as the limit, or else what a cluster with a setting of its own says.

    The cluster's request is not for VMs with dedicated CPUs: theirs follows from the topology.
    """
    resources = domain.setdefault("resources", {})
    requests = dict(resources.get("requests", {}))
    limit = resources.get("limits", {}).get("cpu")
    if limit is not None and Quantity(limit) and not Quantity(requests.get("cpu", "0")):
        requests["cpu"] = limit
    dedicated = domain.get("cpu", {}).get("dedicatedCpuPlacement", False)
    if config.cpu_request != BUILT_IN_CPU_REQUEST and "cpu" not in requests and not dedicated:
        requests["cpu"] = str(config.cpu_request)
    if requests:
        resources["requests"] = requests


def default_guest_memory(domain: dict[str, Any]) -> None:
    """Guest memory is the memory requested, or else its limit, or else one huge page."""
    memory = domain.setdefault("memory", {})
    if "guest" in memory:
        return
    for kind in ("requests", "limits"):
        amount = domain["resources"].get(kind, {}).get("memory", "0")
        if Quantity(amount):
            memory["guest"] = amount
            return
    if "hugepages" in memory:
        try:
            memory["guest"] = str(Quantity(memory["hugepages"].get("pageSize", "")))
        except ValueError:
            return  # a bad page size is for validation to report


def default_cpu_topology(domain: dict[str, Any]) -> None:
    """Without any topology: as many sockets as CPUs are limited to, or else requested; one core, one thread.

    A topology that is set in part is left as it is.
    """
    cpu = domain.setdefault("cpu", {})
    if any(cpu.get(name) for name in ("cores", "sockets", "threads")):
        return
    resources = domain["resources"]
    amount = resources.get("limits", {}).get("cpu") or resources.get("requests", {}).get("cpu") or "1"
    # An unsigned 32-bit field: a negative amount wraps, and validation reports the amount.
    sockets = Quantity(amount).value % 2**32
    cpu.update(cores=1, threads=1)
    if sockets:
        cpu["sockets"] = sockets
