"""The DataVolumes of a VM's templates: made, and waited for (``vm.go:512-573``)."""

from __future__ import annotations

import copy
from typing import Any

from kvnode.api.names import CREATED_BY_LABEL, VIRTUAL_MACHINE
from kvnode.controller import conditions, names
from kvnode.controller.meta import controller_reference, name_of, spec_of
from kvnode.controller.ports import NORMAL, WARNING
from kvnode.controller.vm.run import Run
from kvnode.controller.volumes import POPULATED, WAIT_FOR_FIRST_CONSUMER, phase_of
from kvnode.kube.errors import ApiError, NotFound
from kvnode.kube.objects import Object, uid_of
from kvnode.kube.resources import DATA_VOLUMES

CREATED = "SuccessfulDataVolumeCreate"
NOT_CREATED = "FailedDataVolumeCreate"
NO_SOURCE = "SourcePVCNotAvailabe"  # the API's spelling


class DataVolumeError(Exception):
    """A DataVolume that cannot be made, or cannot be filled."""


async def ensure_data_volumes(run: Run) -> bool:
    """Make what is missing; whether all are ready to be used.

    Raises:
        DataVolumeError: one cannot be made.
    """
    ready = True
    for template in spec_of(run.vm).get("dataVolumeTemplates") or ():
        name = str((template.get("metadata") or {}).get("name", ""))
        found = run.caches.data_volumes.get(f"{run.namespace}/{name}")
        if found is None:
            await _create(run, name, template)
            ready = False
        elif not _is_ready(run, found):
            ready = False
    return ready


def _is_ready(run: Run, data_volume: Object) -> bool:
    phase, name = phase_of(data_volume), name_of(data_volume)
    if phase in (*POPULATED, WAIT_FOR_FIRST_CONSUMER):
        return True
    if phase == "Failed":
        run.event(WARNING, names.FAILED_DATA_VOLUME_IMPORT, f"The import into DataVolume {name} has failed")
    bound = conditions.find(data_volume, "Bound") or {}
    if phase == "Pending" and bound.get("status") != "True" and bound.get("reason") == "ErrExceededQuota":
        message = f"DataVolume {name} does not fit into the namespace's quota"
        run.event(WARNING, names.FAILED_DATA_VOLUME_IMPORT, message)
        raise DataVolumeError(f"{message}: {bound.get('message') or 'no details'}")
    return False


async def _create(run: Run, name: str, template: dict[str, Any]) -> None:
    made = _manifest(run, template)
    source = (made["spec"].get("source") or {}).get("pvc")
    if source is not None:
        claim = f"{source.get('namespace') or run.namespace}/{source.get('name')}"
        if run.caches.claims.get(claim) is None:
            run.event(WARNING, NO_SOURCE, f"DataVolume {name} stays empty until PVC {claim} is there")
    has_claim = run.caches.claims.get(f"{run.namespace}/{name}") is not None
    run.data_volume_expectations.expect_creations(run.key, 1)
    try:
        await run.world.api.create(DATA_VOLUMES, made)
    except ApiError as error:
        run.data_volume_expectations.creation_observed(run.key)
        if has_claim and "already exists" in str(error):
            return  # an importer from before claims could be adopted
        message = f"DataVolume {name} could not be created: {error}"
        if isinstance(error, NotFound):
            message += ": install CDI, whose they are"
        run.event(WARNING, NOT_CREATED, message)
        raise DataVolumeError(message) from error
    run.event(NORMAL, CREATED, f"Created DataVolume {name}")


def _manifest(run: Run, template: dict[str, Any]) -> Object:
    meta = copy.deepcopy(template.get("metadata") or {})
    spec = copy.deepcopy(template.get("spec") or {})
    meta["namespace"] = run.namespace
    meta["labels"] = {**(meta.get("labels") or {}), CREATED_BY_LABEL: uid_of(run.vm)}
    meta["annotations"] = {**(meta.get("annotations") or {}), names.ALLOW_ADOPTION_ANNOTATION: "true"}
    meta["ownerReferences"] = [controller_reference(run.vm, VIRTUAL_MACHINE)]
    priority = (run.template.get("spec") or {}).get("priorityClassName")
    if priority and not spec.get("priorityClassName"):
        spec["priorityClassName"] = priority
    source = spec.get("source") or {}
    for kind in ("pvc", "snapshot"):
        if source.get(kind) is not None and not source[kind].get("namespace"):
            source[kind]["namespace"] = run.namespace
    return {"apiVersion": DATA_VOLUMES.api_version, "kind": DATA_VOLUMES.kind, "metadata": meta, "spec": spec}
