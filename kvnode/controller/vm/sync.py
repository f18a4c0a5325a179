"""Bring a VM's VMI to what the VM asks for (``vm.go:3215-3390``)."""

from __future__ import annotations

import copy
from typing import Any

from kvnode.api.names import PCI_TOPOLOGY_VERSION_ANNOTATION
from kvnode.controller import conditions, names
from kvnode.controller.equality import equal
from kvnode.controller.errors import SyncError
from kvnode.controller.jsonpatch import add, add_or_change, change, test
from kvnode.controller.meta import annotations_of, at, finalizers, name_of, spec_of, status_of
from kvnode.controller.mirror import mirror_patch, mirrored
from kvnode.controller.vm import strategy
from kvnode.controller.vm.datavolumes import DataVolumeError, ensure_data_volumes
from kvnode.controller.vm.firmware import legacy_uuid
from kvnode.controller.vm.generation import follow_generation
from kvnode.controller.vm.hotplug import follow_volumes
from kvnode.controller.vm.live import follow_live
from kvnode.controller.vm.networksync import follow_networks
from kvnode.controller.vm.restart import judge_restart
from kvnode.controller.vm.revisions import started_spec
from kvnode.controller.vm.run import Run
from kvnode.controller.vm.start import RESTART_REQUIRED, stop
from kvnode.kube.errors import ApiError
from kvnode.kube.objects import Object, is_deleting, metadata
from kvnode.kube.resources import VIRTUAL_MACHINE_INSTANCES, VIRTUAL_MACHINES


async def sync(run: Run) -> None:
    """Do what is to be done now; what it leads to is seen by a later pass.

    Raises:
        SyncError: something that the VM's status is to tell.
        ApiError: the server refused; nothing is to be told.
        AmbiguousStrategyError: spec.running and spec.runStrategy are both set.
    """
    if not run.satisfied:
        return
    started = started_spec(run.world, run.vm) if run.vmi is not None else None
    if is_deleting(run.vm):
        await _finish(run)
        return
    await _hold(run)
    await follow_generation(run)
    wanted = strategy.run_strategy(run.vm)
    if not await _has_disks(run, wanted):
        return
    before = spec_of(run.vm).get("runStrategy")
    await strategy.apply(run, wanted)
    if run.is_rewritten:
        return
    restart = judge_restart(run, started)
    if run.satisfied:
        await _follow(run, before, restart)


async def _finish(run: Run) -> None:
    """Stop a VM that is to go, and let it go when its VMI is gone."""
    if run.vmi is not None and names.ORPHAN_FINALIZER not in finalizers(run.vm):
        await stop(run)
    elif names.VM_FINALIZER in finalizers(run.vm):
        old = finalizers(run.vm)
        await _patch_finalizers(run, old, [one for one in old if one != names.VM_FINALIZER])


async def _hold(run: Run) -> None:
    """Keep the VM from going before its VMI."""
    held = finalizers(run.vm)
    if names.VM_FINALIZER not in held:
        await _patch_finalizers(run, metadata(run.vm).get("finalizers"), [*held, names.VM_FINALIZER])


async def _patch_finalizers(run: Run, old: list[str] | None, new: list[str]) -> None:
    patch = change("/metadata/finalizers", old, new)
    run.vm = await run.world.api.patch(VIRTUAL_MACHINES, name_of(run.vm), run.namespace, patch)


async def _has_disks(run: Run, wanted: str) -> bool:
    """Make the DataVolumes of a VM that does not put that off; whether the VM's state may be looked at."""
    if annotations_of(run.vm).get(names.IMMEDIATE_DATA_VOLUMES_ANNOTATION) == "false":
        return True
    try:
        ready = await ensure_data_volumes(run)
    except DataVolumeError as error:
        raise SyncError(names.FAILED_CREATE, f"the VM's DataVolumes: {error}") from error
    return ready or wanted == strategy.HALTED


async def _follow(run: Run, before: Any, restart: bool) -> None:
    """Make a running VMI follow its VM, and the VM its VMI; write the VM once if that changes it."""
    wanted = copy.deepcopy(run.vm)
    if before is None:
        spec_of(run.vm).pop("runStrategy", None)
    else:
        spec_of(run.vm)["runStrategy"] = before
    template = spec_of(wanted).get("template") or {}
    spec = template.get("spec") or {}
    await follow_networks(run, spec)
    await _keep_uuid(run, wanted, spec)
    await follow_volumes(run, spec)
    await _mirror(run, wanted, template)
    _keep_pci_topology(template, run.vmi)
    if run.settings.config.live_update and not restart and not conditions.has(run.vm, RESTART_REQUIRED):
        await follow_live(run, spec)
    if equal(wanted.get("spec"), run.vm.get("spec")) and equal(wanted["metadata"], run.vm["metadata"]):
        return
    try:
        run.vm = await run.world.api.replace(VIRTUAL_MACHINES, {**wanted, "status": status_of(run.original)})
    except ApiError as error:
        raise SyncError(names.FAILED_UPDATE, f"the VM could not be written: {error}") from error


async def _keep_uuid(run: Run, wanted: Object, spec: dict[str, Any]) -> None:
    """Write down the firmware UUID of a VM that was made without one."""
    old = at(spec, "domain", "firmware")
    if (old or {}).get("uuid"):
        return
    new = {**(old or {}), "uuid": legacy_uuid(name_of(run.vm))}
    path = "/spec/template/spec/domain/firmware"
    try:
        written = await run.world.api.patch(
            VIRTUAL_MACHINES, name_of(run.vm), run.namespace, [test(path, old), add(path, new)]
        )
    except ApiError as error:
        raise SyncError("FirmwareUUIDError", f"the firmware's UUID could not be kept: {error}") from error
    spec.setdefault("domain", {})["firmware"] = new
    # It is in the VM now, and no reason to write it again.
    for vm in (run.vm, wanted):
        vm["metadata"] = {**vm["metadata"], **written["metadata"]}
    domain = run.template.setdefault("spec", {}).setdefault("domain", {})
    domain["firmware"] = dict(new)


async def _mirror(run: Run, wanted: Object, template: dict[str, Any]) -> None:
    """Make the VMI's labels and annotations follow those that the VM may change at any time."""
    vmi = run.vmi
    if vmi is None or is_deleting(vmi):
        return
    source, old = template.get("metadata") or {}, metadata(vmi)
    patch = mirror_patch(
        "/metadata/labels", run.settings.labels_sync, source.get("labels") or {}, old.get("labels")
    )
    patterns = (*names.DESCHEDULER_ANNOTATIONS, *run.settings.annotations_sync)
    notes = dict(old.get("annotations") or {})
    changed = mirrored(patterns, source.get("annotations") or {}, notes)
    if mirrored((names.SKIP_BACKUP_HOOKS_ANNOTATION,), annotations_of(wanted), notes) or changed:
        patch += add_or_change("/metadata/annotations", old.get("annotations"), notes)
    if not patch:
        return
    try:
        run.vmi = await run.world.api.patch(VIRTUAL_MACHINE_INSTANCES, name_of(vmi), run.namespace, patch)
    except ApiError as error:
        raise SyncError(
            "AnnotationsLabelsChangeError", f"the VMI's annotations do not follow: {error}"
        ) from error


def _keep_pci_topology(template: dict[str, Any], vmi: Object | None) -> None:
    """Give the next VMI the PCI topology that a node found this one to have (``vm.go:3186``)."""
    found = annotations_of(vmi or {})
    notes = (template.get("metadata") or {}).get("annotations") or {}
    version = found.get(PCI_TOPOLOGY_VERSION_ANNOTATION)
    if not version or notes.get(PCI_TOPOLOGY_VERSION_ANNOTATION):
        return
    kept = (PCI_TOPOLOGY_VERSION_ANNOTATION, names.PCI_SLOT_COUNT_ANNOTATION)
    notes = {**notes, **{key: found[key] for key in kept if key in found}}
    template.setdefault("metadata", {})["annotations"] = notes
