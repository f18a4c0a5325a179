"""The VMI's volumes in its status, so that a node need not ask for their claims (``storage.go:122-342``)."""

from __future__ import annotations

from typing import Any

from kvnode.controller import names
from kvnode.controller.claimnames import claim_name
from kvnode.controller.indices import CONTROLLER, STATE_FOR_LABEL
from kvnode.controller.meta import annotations_of, at, name_of, put, spec_of, status_of
from kvnode.controller.ports import NORMAL
from kvnode.controller.vmi.backend import VOLUME_NAME, state_claim
from kvnode.controller.vmi.run import Run
from kvnode.kube.objects import Object, uid_of

FILESYSTEM_OVERHEAD = "0.055"
"""Share of a claim that its file system takes, where no importer says otherwise."""

PENDING = "Pending"
_NOT_READY = "PVCNotReady"
_ATTACHABLE = ("", "Bound", PENDING)

Status = dict[str, Any]


def tell_volumes(run: Run, pod: Object) -> None:
    """Have every volume of the VMI in its status, by name."""
    vmi = run.vmi
    old = {str(one.get("name")): dict(one) for one in at(vmi, "status", "volumeStatus") or ()}
    attachments = run.caches.pods.by(CONTROLLER, uid_of(pod)) if uid_of(pod) else []
    made = _state_volume(run, old)
    in_pod = {one.get("name") for one in at(pod, "spec", "volumes") or ()}
    for volume in spec_of(vmi).get("volumes") or ():
        name, claim = str(volume.get("name")), claim_name(volume)
        status = old.pop(name, {"name": name, "target": ""})
        if volume.get("memoryDump") is not None and status.get("memoryDumpVolume") is None:
            status["memoryDumpVolume"] = {"claimName": name}
        if claim and name not in in_pod:
            status = _hotplugged(run, status, claim, _attachment(attachments, name))
        made.append(_with_claim(run, status, claim))
    for volume in spec_of(vmi).get("utilityVolumes") or ():
        name, claim = str(volume.get("name")), str(volume.get("claimName") or "")
        status = old.pop(name, {"name": name, "target": ""})
        status = _hotplugged(run, status, claim, _attachment(attachments, name))
        made.append(_with_claim(run, status, claim))
    made += _leaving(old, attachments)
    put(status_of(vmi), "volumeStatus", sorted(made, key=lambda one: str(one.get("name"))))


def _state_volume(run: Run, old: dict[str, Status]) -> list[Status]:
    claim = state_claim(run.caches, run.vmi)
    if claim is None:
        return []
    held = old.pop(VOLUME_NAME, None) or old.pop(name_of(claim), None)
    return [{**held, "name": VOLUME_NAME}] if held else []


def _with_claim(run: Run, status: Status, name: str) -> Status:
    claim = run.caches.claims.get(f"{run.namespace}/{name}") if name else None
    if claim is None:
        return status
    info: dict[str, Any] = {"claimName": name_of(claim), "filesystemOverhead": FILESYSTEM_OVERHEAD}
    put(info, "accessModes", at(claim, "spec", "accessModes"))
    put(info, "volumeMode", at(claim, "spec", "volumeMode"))
    put(info, "capacity", at(claim, "status", "capacity"))
    put(info, "requests", at(claim, "spec", "resources", "requests"))
    notes = annotations_of(claim)
    preallocated = (
        "cdi.kubevirt.io/storage.preallocation",
        "user.custom.annotation/storage.thick-provisioned",
    )
    put(info, "preallocated", any(notes.get(one) == "true" for one in preallocated))
    return {**status, "persistentVolumeClaimInfo": info}


def _attachment(pods: list[Object], volume: str) -> Object | None:
    return next(
        (one for one in pods if volume in {v.get("name") for v in at(one, "spec", "volumes") or ()}), None
    )


def _hotplugged(run: Run, status: Status, claim: str, pod: Object | None) -> Status:
    """The status of a volume that the launcher pod does not have."""
    made = {**status, "hotplugVolume": dict(status.get("hotplugVolume") or {})}
    phase = str(made.get("phase") or "")
    if pod is None:
        if phase != "Ready":
            made["hotplugVolume"].pop("attachPodUID", None)
            made |= _claim_phase(run, claim)
        return made
    containers: list[Status] = at(pod, "status", "containerStatuses") or []
    ready = len(containers) == 1 and bool(containers[0].get("ready"))
    made["hotplugVolume"]["attachPodName"] = name_of(pod)
    put(made["hotplugVolume"], "attachPodUID", uid_of(pod) if ready else "")
    if phase in _ATTACHABLE:
        message = f"Attachment pod {name_of(pod)} has volume {status['name']}"
        made |= {"phase": "AttachedToNode", "reason": names.SUCCESSFUL_CREATE, "message": message}
        run.event(NORMAL, names.SUCCESSFUL_CREATE, message)
    elif phase == "Detaching":  # put in again before it was quite out
        made |= _claim_phase(run, claim)
    return made


def _claim_phase(run: Run, name: str) -> Status:
    claim = run.caches.claims.get(f"{run.namespace}/{name}")
    if claim is None:
        return {"phase": PENDING, "reason": names.FAILED_PVC_NOT_FOUND, "message": f"PVC {name} is not there"}
    phase = at(claim, "status", "phase")
    message = f"PVC {name} is in phase {phase or 'unknown'}"
    return {"phase": "Bound" if phase == "Bound" else PENDING, "reason": _NOT_READY, "message": message}


def _leaving(old: dict[str, Status], pods: list[Object]) -> list[Status]:
    """Volumes that were taken out of the VMI, for as long as a pod still has them."""
    made: list[Status] = []
    for name, status in old.items():
        pod = _attachment(pods, name)
        if pod is None or name.startswith(STATE_FOR_LABEL):
            continue
        hotplug = {
            **(status.get("hotplugVolume") or {}),
            "attachPodName": name_of(pod),
            "attachPodUID": uid_of(pod),
        }
        phase = status.get("phase")
        phase = phase if phase in ("Ready", "MountedToPod") else "Detaching"
        made.append({**status, "hotplugVolume": hotplug, "phase": phase})
    return made
