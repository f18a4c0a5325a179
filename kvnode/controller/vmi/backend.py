"""The claim that keeps a VM's own state: TPM, NVRAM, changed blocks (``pkg/storage/backend-storage``)."""

from __future__ import annotations

from kvnode.api.names import VIRTUAL_MACHINE_INSTANCE
from kvnode.controller.errors import SyncError
from kvnode.controller.indices import INSTANCE, STATE_FOR_LABEL
from kvnode.controller.meta import (
    annotations_of,
    at,
    controller_reference,
    labels_of,
    name_of,
    spec_of,
    status_of,
)
from kvnode.controller.ports import Caches
from kvnode.controller.vmi.run import Run
from kvnode.kube.errors import ApiError
from kvnode.kube.objects import Object, is_deleting, key_of, metadata
from kvnode.kube.resources import PERSISTENT_VOLUME_CLAIMS

VOLUME_NAME = "persistent-state-for-this-vm"
NOT_CREATED = "FailedBackendStorageCreate"
NOT_PROBED = "FailedBackendStorageProbe"
NOT_READY = "BackendStorageNotReady"

_SIZE = "10Mi"
_DEFAULT_CLASS = (
    "storageclass.kubevirt.io/is-default-virt-class",
    "storageclass.kubernetes.io/is-default-class",
)


def needs_state(vmi: Object) -> bool:
    """Whether the VM has state that outlives its pod."""
    domain = spec_of(vmi).get("domain") or {}
    tpm = at(domain, "devices", "tpm")
    if tpm is not None and tpm.get("enabled") is not False and tpm.get("persistent"):
        return True
    tracked = at(vmi, "status", "changedBlockTracking", "state") in ("Initializing", "Enabled")
    return bool(at(domain, "firmware", "bootloader", "efi", "persistent")) or tracked


def state_claim(caches: Caches, vmi: Object) -> Object | None:
    """The claim that keeps the VM's state; one that is so labelled, before one that is only named so."""
    found = [one for one in caches.claims.by(INSTANCE, key_of(vmi)) if not is_deleting(one)]
    return next((one for one in found if STATE_FOR_LABEL in labels_of(one)), found[0] if found else None)


async def ensure_state_claim(run: Run) -> str:
    """Have the claim if it is needed, and only then; the answer is its name, "" for none.

    Raises:
        SyncError: it could not be made, or be got rid of.
    """
    vmi, claim = run.original, state_claim(run.caches, run.original)
    if not needs_state(vmi):
        if claim is not None:
            try:
                await run.world.api.delete(PERSISTENT_VOLUME_CLAIMS, name_of(claim), run.namespace)
            except ApiError as error:
                raise SyncError(NOT_CREATED, f"PVC {name_of(claim)} could not be deleted: {error}") from error
        return ""
    if claim is not None:
        return name_of(claim)
    run.claim_expectations.expect_creations(run.key, 1)
    try:
        made = await run.world.api.create(PERSISTENT_VOLUME_CLAIMS, _claim(run))
    except (ApiError, SyncError) as error:
        run.claim_expectations.creation_observed(run.key)
        raise SyncError(NOT_CREATED, f"no PVC for the VM's own state: {error}") from error
    return name_of(made)


def check_state_claim(run: Run, name: str) -> None:
    """Find out whether the claim can be used.

    Raises:
        SyncError: not yet, or never.
    """
    if not name:
        return
    claim = run.caches.claims.get(f"{run.namespace}/{name}")
    phase = at(claim, "status", "phase")
    if claim is None or phase == "Lost":
        raise SyncError(
            NOT_PROBED, f"PVC {name} for the VM's own state is {'lost' if claim else 'not there'}"
        )
    if phase == "Bound":
        return
    if phase == "Pending":
        class_name = at(claim, "spec", "storageClassName")
        found = run.caches.storage_classes.get(str(class_name)) if class_name else None
        if found is None:
            raise SyncError(NOT_PROBED, f"PVC {name}: there is no storage class {class_name!r}")
        if found.get("volumeBindingMode") == "WaitForFirstConsumer":
            return
    raise SyncError(NOT_READY, f"PVC {name} for the VM's own state is not bound yet")


def tell_state_claim(vmi: Object, claim: Object | None) -> None:
    """Have the claim among the VMI's volumes."""
    if claim is None:
        return
    info = {"claimName": name_of(claim)}
    modes = at(claim, "spec", "accessModes")
    status = status_of(vmi)
    volumes = list(status.get("volumeStatus") or ())
    for index, volume in enumerate(volumes):
        if str(volume.get("name", "")).startswith(STATE_FOR_LABEL):
            info = {**(volume.get("persistentVolumeClaimInfo") or {}), **info}
            volumes[index] = {**volume, "name": VOLUME_NAME}
            break
    else:
        index = len(volumes)
        volumes.append({"name": VOLUME_NAME, "target": ""})
    volumes[index]["persistentVolumeClaimInfo"] = {**info, **({"accessModes": modes} if modes else {})}
    status["volumeStatus"] = volumes


def _claim(run: Run) -> Object:
    vmi = run.original
    class_name = run.settings.state_storage_class
    # A class that was chosen for this is taken to be one that a VM can migrate with.
    mode = "ReadWriteMany" if class_name else "ReadWriteOnce"
    class_name = class_name or _default_class(run.caches)
    if not class_name:
        raise SyncError(
            NOT_CREATED, "there is no default storage class: set spec.configuration.vmStateStorageClass"
        )
    owners = metadata(vmi).get("ownerReferences") or [controller_reference(vmi, VIRTUAL_MACHINE_INSTANCE)]
    return {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": {
            "generateName": f"{STATE_FOR_LABEL}-{name_of(vmi)}-",
            "namespace": run.namespace,
            "labels": {STATE_FOR_LABEL: name_of(vmi), "cdi.kubevirt.io/applyStorageProfile": "true"},
            "ownerReferences": owners,
        },
        "spec": {
            "accessModes": [mode],
            "resources": {"requests": {"storage": _SIZE}},
            "storageClassName": class_name,
            "volumeMode": "Filesystem",
        },
    }


def _default_class(caches: Caches) -> str:
    found = list(caches.storage_classes.objects())
    for annotation in _DEFAULT_CLASS:
        for one in found:
            if annotations_of(one).get(annotation) == "true":
                return name_of(one)
    return ""
