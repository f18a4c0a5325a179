"""Memory plugged into a running VM (``vm.go:3450-3560``, ``pkg/liveupdate/memory/memory.go:53``)."""

from __future__ import annotations

from typing import Any

from kvnode.api.quantity import Quantity
from kvnode.controller import conditions
from kvnode.controller.errors import SyncError
from kvnode.controller.instance import is_migrating
from kvnode.controller.jsonpatch import Operation, change
from kvnode.controller.meta import at
from kvnode.controller.vm.restart import require_restart
from kvnode.controller.vm.run import Run
from kvnode.kube.objects import Object

CHANGE = "HotMemoryChange"
LEAST_GUEST = 2**30
"""Bytes of a guest that memory can be plugged into."""

_BLOCK = 2 * 2**20
_GIANT_BLOCK = 2**30


def follow_memory(run: Run, vmi: Object, spec: dict[str, Any]) -> list[Operation]:
    """The patch of the VMI by which its memory follows the template's; empty when a restart must do it, or nothing.

    Raises:
        SyncError: another change is under way.
    """
    wanted, running = at(spec, "domain", "memory", "guest"), at(vmi, "spec", "domain", "memory", "guest")
    current = at(vmi, "status", "memory", "guestCurrent")
    if wanted is None or running is None or current is None:
        return []
    if conditions.has(vmi, CHANGE, "False"):
        require_restart(run.vm, "memory was changed, and could not be plugged into this VM", run.now())
        return []
    guest = Quantity.from_json(wanted)
    if guest == Quantity.from_json(running):
        return []
    refusal = _refusal_of_vm(vmi)
    if not refusal:
        if conditions.has(vmi, CHANGE, "True"):
            raise SyncError("HotPlugMemoryError", "memory cannot be plugged: the last change is not done yet")
        if is_migrating(vmi, run.world.clock()):
            raise SyncError("HotPlugMemoryError", "memory cannot be plugged while the VM migrates")
        refusal = _refusal_of_size(vmi, spec, guest)
    if refusal:
        require_restart(run.vm, refusal, run.now())
        return []
    return _patch(vmi, spec, guest, Quantity.from_json(current))


def _refusal_of_vm(vmi: Object) -> str:
    if not conditions.has(vmi, "LiveMigratable", "True"):
        return "memory was changed: it can be plugged only into a VM that can migrate"
    if at(vmi, "spec", "domain", "memory", "maxGuest") is None:
        return "memory was changed: this VM was started without room for more"
    return ""


def _refusal_of_size(vmi: Object, spec: dict[str, Any], guest: Quantity) -> str:
    domain = spec.get("domain") or {}
    most = Quantity.from_json(at(vmi, "spec", "domain", "memory", "maxGuest"))
    block = _GIANT_BLOCK if at(domain, "memory", "hugepages", "pageSize") == "1Gi" else _BLOCK
    at_boot = at(vmi, "status", "memory", "guestAtBoot")
    if at(domain, "cpu", "realtime") is not None:
        return "memory cannot be plugged into a realtime VM"
    if at(domain, "cpu", "numa", "guestMappingPassthrough") is not None:
        return "memory cannot be plugged into a VM that mirrors the host's NUMA cells"
    if domain.get("launchSecurity") is not None:
        return "memory cannot be plugged into an encrypted VM"
    if guest > most:
        return f"more memory is wanted than the VM was started with room for ({most})"
    if guest.value % block or most.value % block:
        return f"memory can be plugged only in blocks of {Quantity.from_bytes(block)}"
    if spec.get("architecture") != "amd64":
        return "memory can be plugged on amd64 only"
    if guest.value < LEAST_GUEST:
        return "memory can be plugged only into a VM of at least 1Gi"
    if at_boot is not None and guest < Quantity.from_json(at_boot):
        return "less memory is wanted than the VM was started with"
    return ""


def _patch(vmi: Object, spec: dict[str, Any], guest: Quantity, current: Quantity) -> list[Operation]:
    old = Quantity.from_json(at(vmi, "spec", "domain", "memory", "guest"))
    patch = change("/spec/domain/memory/guest", str(old), str(guest))
    delta = guest.value - current.value
    request = Quantity.from_json(at(vmi, "spec", "domain", "resources", "requests", "memory") or 0)
    if request:
        new = request + Quantity.from_bytes(delta)
        if new < guest:
            # Not all memory may have come back when some was taken out.
            new, delta = guest, 0
        patch += change("/spec/domain/resources/requests/memory", str(request), str(new))
    if Quantity.from_json(at(spec, "domain", "resources", "limits", "memory") or 0):
        limit = Quantity.from_json(at(vmi, "spec", "domain", "resources", "limits", "memory") or 0)
        new = limit + Quantity.from_bytes(delta)
        patch += change("/spec/domain/resources/limits/memory", str(limit), str(new))
    return patch
