"""Whether the volumes of a VMI can be attached to a node (``datavolumes.go:112-150``)."""

from __future__ import annotations

from typing import Any

from kvnode.controller import conditions, names
from kvnode.controller.claimnames import claim_name
from kvnode.controller.errors import SyncError, WaitingError
from kvnode.controller.meta import spec_of
from kvnode.controller.ports import NORMAL, WARNING
from kvnode.controller.vmi.run import Run
from kvnode.controller.volumes import (
    DATA_VOLUME,
    POPULATED,
    WAIT_FOR_FIRST_CONSUMER,
    is_declared_hotplug,
    phase_of,
)
from kvnode.kube.objects import Object, controller_of

DATA_VOLUMES_READY = "DataVolumesReady"


def volumes_ready(run: Run) -> tuple[bool, bool]:
    """Whether all claims are there and filled, and whether some wait for a pod to be filled for.

    Raises:
        SyncError: a claim is not there, or the DataVolume that owns one.
    """
    ready, waits = True, False
    for volume in spec_of(run.original).get("volumes") or ():
        on_claim = volume.get("dataVolume") is not None or volume.get("persistentVolumeClaim") is not None
        if not on_claim or is_declared_hotplug(volume):
            continue
        phase = _phase(run, volume)
        waits = waits or phase == WAIT_FOR_FIRST_CONSUMER
        ready = ready and phase in (*POPULATED, WAIT_FOR_FIRST_CONSUMER)
    return ready, waits


def _phase(run: Run, volume: dict[str, Any]) -> str:
    """The phase of the DataVolume behind a volume's claim; Succeeded for a claim that has none."""
    name = claim_name(volume)
    claim = run.caches.claims.get(f"{run.namespace}/{name}")
    if claim is None:
        message = f"PVC {run.namespace}/{name} is not there: the VM waits for it"
        run.event(NORMAL, names.FAILED_PVC_NOT_FOUND, message)
        raise WaitingError(names.FAILED_PVC_NOT_FOUND, message)
    owner = controller_of(claim)
    if not owner or owner.get("kind") != DATA_VOLUME:
        return POPULATED[0]
    found = run.caches.data_volumes.get(f"{run.namespace}/{owner.get('name')}")
    if found is None:
        message = f"DataVolume {run.namespace}/{owner.get('name')}, which owns PVC {name}, is not there"
        run.event(WARNING, names.FAILED_PVC_NOT_FOUND, message)
        raise SyncError(names.FAILED_DATA_VOLUME_IMPORT, message)
    return phase_of(found)


def tell_data_volumes(vmi: Object, data_volumes: list[Object]) -> None:
    """Say in the VMI's status whether its DataVolumes are ready."""
    if not data_volumes:
        return
    found = [(conditions.find(one, "Ready") or {}).get("status") or "Unknown" for one in data_volumes]
    status, reason, message = "True", "AllDVsReady", "all DataVolumes of the VM are ready"
    if any(one != "True" for one in found):
        status = "False" if "False" in found else next(one for one in found if one != "True")
        reason, message = "NotAllDVsReady", "some DataVolumes of the VM are not ready"
    conditions.update(vmi, conditions.make(DATA_VOLUMES_READY, status, reason, message))
