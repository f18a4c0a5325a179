"""``status.volumeStatus``: where each volume is in the guest, and how far plugged volumes and memory dumps are.

``pkg/virt-handler/vm.go:467-540,625-700,950-990``
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from datetime import datetime
from typing import Any

from kvnode.agent.domain import Domain, alias_of
from kvnode.agent.errors import FAILURES
from kvnode.agent.parts import Parts
from kvnode.agent.vmi import Vmi, key_of, metadata, spec, volume_statuses, volumes

logger = logging.getLogger(__name__)

VolumeStatus = dict[str, Any]

READY, MOUNTED, UNMOUNTED = "Ready", "MountedToPod", "UnMountedFromPod"
DUMP_RUNS, DUMP_DONE, DUMP_FAILED = "MemoryDumpInProgress", "MemoryDumpCompleted", "MemoryDumpFailed"

_BEFORE_MOUNT = ("Bound", "Pending", "AttachedToNode")
_BEFORE_UNMOUNT = (READY, MOUNTED, "AttachedToNode")

REFRESH = 1.0
"""Seconds until volumes that are on their way are looked at again."""


def update_volumes(vmi: Vmi, domain: Domain | None, parts: Parts) -> None:
    """Set ``status.volumeStatus``, sorted by name, with an Event for each change of phase."""
    before = volume_statuses(vmi)
    if not before:
        return
    targets = _targets(domain)
    asked = {one.get("name") for one in (*volumes(vmi), *(spec(vmi).get("utilityVolumes") or ()))}
    after: list[VolumeStatus] = []
    pending = False
    for known in before:
        one = {**known, "target": targets.get(str(known.get("name")), "")}
        if one.get("hotplugVolume") is not None:
            pending |= _update_plugged(one, one.get("name") in asked, vmi, parts)
        if one.get("memoryDumpVolume") is not None:
            pending |= _update_dump(one, domain, vmi, parts.clock.now())
        after.append(one)
    after.sort(key=lambda one: str(one.get("name") or ""))
    if pending:
        parts.queue.add_after(key_of(vmi), REFRESH)
    _record_changes(before, after, vmi, parts)
    vmi["status"]["volumeStatus"] = after


def _targets(domain: Domain | None) -> dict[str, str]:
    """Device names in the guest by volume. An empty CD drive is no target."""
    found = {}
    for disk in domain.devices("Disks") if domain else ():
        source = disk.get("Source") or {}
        if source.get("File") or source.get("Dev"):
            found[alias_of(disk)] = str((disk.get("Target") or {}).get("Device") or "")
    return found


def _update_plugged(one: VolumeStatus, asked: bool, vmi: Vmi, parts: Parts) -> bool:
    """Move a hot-plugged volume on by what is mounted; tell whether it is still on its way."""
    name = one.get("name")
    if one["target"]:
        _set(one, READY, "VolumeReady", f"volume {name} is attached to the VM")
        return False
    try:
        pod = str(one["hotplugVolume"].get("attachPodUID") or "")
        mounted = parts.hotplug.is_mounted(vmi, str(name), pod)
    except FAILURES as error:
        logger.warning("%s: whether volume %s is mounted: %s", key_of(vmi), name, error)
        mounted = False
    phase = one.get("phase")
    if mounted and asked and phase in _BEFORE_MOUNT:
        _set(one, MOUNTED, "VolumeMountedToPod", f"volume {name} is mounted in the launcher's pod")
    elif not mounted and not asked and phase in _BEFORE_UNMOUNT:
        _set(one, UNMOUNTED, "VolumeUnMountedFromPod", f"volume {name} is not mounted in the launcher's pod")
    return True


def _update_dump(one: VolumeStatus, domain: Domain | None, vmi: Vmi, now: datetime) -> bool:
    """Move a memory dump on; tell whether there is more to come soon."""
    name = one.get("name")
    dump = dict(one["memoryDumpVolume"])
    one["memoryDumpVolume"] = dump
    if one.get("phase") == MOUNTED:
        _set(one, DUMP_RUNS, "VolumeMountedToPod", f"volume {name} is attached, memory is dumped into it")
        dump["targetFileName"] = f"{metadata(vmi).get('name')}-{name}-{now:%Y%m%d-%H%M%S}.memory.dump"
        return True
    told = domain.metadata("MemoryDump") if domain else None
    if one.get("phase") != DUMP_RUNS or not isinstance(told, Mapping):
        return False
    if told.get("FileName") != dump.get("targetFileName"):
        return False  # the launcher has not begun
    if told.get("StartTimestamp"):
        dump["startTimestamp"] = told["StartTimestamp"]
    if told.get("EndTimestamp") and told.get("Failed"):
        reason = one.get("reason") or ""
        _set(one, DUMP_FAILED, reason, f"memory dump into {name} failed: {told.get('FailureReason')}")
        dump["endTimestamp"] = told["EndTimestamp"]
    elif told.get("Completed"):
        _set(one, DUMP_DONE, "VolumeReady", f"memory was dumped into volume {name}")
        dump["endTimestamp"] = told.get("EndTimestamp")
    return True


def _set(one: VolumeStatus, phase: str, reason: str, message: str) -> None:
    one.update(phase=phase, reason=reason, message=message)


def _record_changes(before: list[VolumeStatus], after: list[VolumeStatus], vmi: Vmi, parts: Parts) -> None:
    phases = {one.get("name"): one.get("phase") or "" for one in before}
    for one in after:
        if (one.get("phase") or "") != phases.get(one.get("name")):
            parts.recorder.event(vmi, "Normal", str(one.get("reason") or ""), str(one.get("message") or ""))
