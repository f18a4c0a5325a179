"""CPUs, memory and placement of a running VM that follow the template (``vm.go:575-813,3465-3580``)."""

from __future__ import annotations

from typing import Any

from kvnode.api.quantity import Quantity
from kvnode.controller import conditions
from kvnode.controller.equality import equal
from kvnode.controller.errors import SyncError
from kvnode.controller.instance import is_migrating, vcpus
from kvnode.controller.jsonpatch import Operation, add, change, remove
from kvnode.controller.meta import at, name_of, spec_of
from kvnode.controller.vm.memory import follow_memory
from kvnode.controller.vm.restart import require_restart
from kvnode.controller.vm.run import Run
from kvnode.kube.errors import ApiError
from kvnode.kube.objects import Object, is_deleting
from kvnode.kube.resources import VIRTUAL_MACHINE_INSTANCES

CPU_ERROR = "HotPlugCPUError"
MEMORY_ERROR = "HotPlugMemoryError"
AFFINITY_ERROR = "AffinityChangeError"
TOLERATIONS_ERROR = "TolerationsChangeError"

Spec = dict[str, Any]


async def follow_live(run: Run, spec: Spec) -> None:
    """Change the running VMI where the template's spec differs in what can be changed; else ask for a restart.

    Raises:
        SyncError: another change is under way, or the server refused.
    """
    vmi = run.vmi
    if vmi is None or is_deleting(vmi):
        return
    await _follow_cpu(run, vmi, spec)
    await _follow_placement(run, vmi, spec, ("affinity", "nodeSelector"), AFFINITY_ERROR)
    await _follow_placement(run, vmi, spec, ("tolerations",), TOLERATIONS_ERROR)
    patch = follow_memory(run, vmi, spec)
    if patch:
        await _patch(run, vmi, patch, MEMORY_ERROR)


async def _follow_cpu(run: Run, vmi: Object, spec: Spec) -> None:
    wanted, running = at(spec, "domain", "cpu"), at(vmi, "spec", "domain", "cpu")
    if wanted is None or running is None:
        return
    sockets, now = int(wanted.get("sockets") or 0), int(running.get("sockets") or 0)
    if sockets == now:
        return
    if conditions.has(vmi, "HotVCPUChange", "True"):
        raise SyncError(CPU_ERROR, "CPUs cannot be plugged: the last ones are not in yet")
    if is_migrating(vmi, run.world.clock()):
        raise SyncError(CPU_ERROR, "CPUs cannot be plugged while the VM migrates")
    refusal = ""
    if sockets > int(running.get("maxSockets") or 0):
        refusal = "more CPU sockets are wanted than the VM was started with room for"
    elif sockets < now:
        refusal = "CPU sockets cannot be taken out of a running VM"
    elif spec.get("architecture") == "arm64":
        refusal = "CPUs cannot be plugged on arm64"
    if refusal:
        require_restart(run.vm, refusal, run.now())
        return
    await _patch(run, vmi, _cpu_patch(run, vmi, spec), CPU_ERROR)


def _cpu_patch(run: Run, vmi: Object, spec: Spec) -> list[Operation]:
    wanted, running = at(spec, "domain", "cpu"), at(vmi, "spec", "domain", "cpu")
    patch = change("/spec/domain/cpu/sockets", running.get("sockets"), wanted.get("sockets"))
    milli = (vcpus(wanted) - vcpus(running)) * (1000 // run.settings.config.cpu_allocation_ratio)
    for side in ("requests", "limits"):
        if not Quantity.from_json(at(spec, "domain", "resources", side, "cpu") or 0):
            continue
        old = Quantity.from_json(at(vmi, "spec", "domain", "resources", side, "cpu") or 0)
        new = old + Quantity(f"{milli}m")
        patch += change(f"/spec/domain/resources/{side}/cpu", str(old), str(new))
    return patch


async def _follow_placement(run: Run, vmi: Object, spec: Spec, fields: tuple[str, ...], reason: str) -> None:
    running = spec_of(vmi)
    changed = [field for field in fields if not equal(spec.get(field), running.get(field))]
    if changed and is_migrating(vmi, run.world.clock()):
        raise SyncError(reason, f"spec.{changed[0]} cannot be changed while the VM migrates")
    for field in changed:
        path, old, new = f"/spec/{field}", running.get(field), spec.get(field)
        if new is None:
            patch = [remove(path)]
        elif old is None:
            patch = [add(path, new)]
        else:
            patch = change(path, old, new)
        await _patch(run, vmi, patch, reason)


async def _patch(run: Run, vmi: Object, patch: list[Operation], reason: str) -> None:
    try:
        await run.world.api.patch(VIRTUAL_MACHINE_INSTANCES, name_of(vmi), run.namespace, patch)
    except ApiError as error:
        raise SyncError(reason, f"the running VMI could not be changed: {error}") from error
