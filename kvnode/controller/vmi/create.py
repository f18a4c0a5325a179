"""The launcher pod of a VMI that has none (``life.go:105-190``)."""

from __future__ import annotations

from kvnode.api.errors import FieldError
from kvnode.controller import names
from kvnode.controller.errors import SyncError, WaitingError
from kvnode.controller.indices import INSTANCE, NAMESPACE
from kvnode.controller.instance import is_unprocessed
from kvnode.controller.meta import at, name_of, spec_of
from kvnode.controller.networks import check_new_networks
from kvnode.controller.ports import NORMAL, WARNING
from kvnode.controller.vmi.backend import check_state_claim, ensure_state_claim
from kvnode.controller.vmi.limits import memory_limit_ratio, needs_cpu_limit
from kvnode.controller.vmi.run import Run
from kvnode.controller.vmi.topology import has_frequency, needs_frequency
from kvnode.kube.errors import ApiError, Forbidden
from kvnode.kube.objects import Object, key_of, uid_of
from kvnode.kube.resources import PODS
from kvnode.spec.pod import Claim, ClaimNotFoundError, Surroundings, render_launcher_pod

CONTAINER_PATHS_DISABLED = "ContainerPathVolumesDisabled"
_IDLE = ("", "Pending", "WaitingForSync", "Synchronizing", "Succeeded", "Failed")


async def ensure_pod(run: Run, ready: bool, waits: bool) -> None:
    """Create the pod when the VMI can have one: a temporary one when a volume waits for its first consumer.

    Raises:
        SyncError: it could not be created.
    """
    vmi = run.original
    if not is_unprocessed(vmi) or (needs_frequency(vmi) and not has_frequency(vmi)) or not ready:
        return
    if any(_is_running(one) for one in run.caches.migrations.by(INSTANCE, run.key)):
        raise SyncError(names.FAILED_CREATE, "no pod is created while a migration of the VM is under way")
    state = await ensure_state_claim(run)
    if not run.claim_expectations.satisfied(run.key):
        return
    check_state_claim(run, state)
    _check_container_paths(run)
    pod = _render(run, state, waits)
    try:
        check_new_networks(spec_of(vmi))
    except FieldError as error:
        raise SyncError(names.FAILED_CREATE_VALIDATION, f"no pod can be created: {error}") from error
    await _create(run, pod)


def _is_running(migration: Object) -> bool:
    """Whether a migration has begun, and not ended (``types.go``, VirtualMachineInstanceMigration.IsRunning)."""
    return (at(migration, "status", "phase") or "") not in _IDLE


def _check_container_paths(run: Run) -> None:
    spec = spec_of(run.original)
    shared = {
        one.get("name")
        for one in at(spec, "domain", "devices", "filesystems") or ()
        if one.get("virtiofs") is not None
    }
    asked = any(
        one.get("containerPath") is not None and one.get("name") in shared
        for one in spec.get("volumes") or ()
    )
    if asked and not run.settings.config.gate("ContainerPathVolumes"):
        message = "the VM shares paths of its containers: turn on the feature gate ContainerPathVolumes"
        run.event(WARNING, CONTAINER_PATHS_DISABLED, f"No pod can be created: {message}")
        raise SyncError(CONTAINER_PATHS_DISABLED, message)


def _render(run: Run, state: str, waits: bool) -> Object:
    claims = {
        name_of(one): Claim(
            block=at(one, "spec", "volumeMode") == "Block",
            shared="ReadWriteMany" in (at(one, "spec", "accessModes") or ()),
            uid=uid_of(one),
        )
        for one in run.caches.claims.by(NAMESPACE, run.namespace)
    }
    settings = run.settings
    try:
        pod = render_launcher_pod(
            run.original,
            settings.architecture,
            settings.config,
            claims,
            settings=settings.launcher,
            surroundings=Surroundings(
                backend_storage_claim=state,
                auto_cpu_limit=needs_cpu_limit(run),
                auto_memory_limit_ratio=memory_limit_ratio(run),
                temporary=waits,
            ),
        )
    except ClaimNotFoundError as error:
        message = f"the launcher pod cannot be made: {error}"
        run.event(WARNING, names.FAILED_PVC_NOT_FOUND, message)
        raise WaitingError(names.FAILED_PVC_NOT_FOUND, message) from error
    except FieldError as error:
        raise SyncError(names.FAILED_CREATE, f"the launcher pod cannot be made: {error}") from error
    pod["metadata"]["namespace"] = run.namespace
    return {"apiVersion": "v1", "kind": "Pod", **pod}


async def _create(run: Run, pod: Object) -> None:
    run.pod_expectations.expect_creations(run.key, 1)
    try:
        run.pod = await run.world.api.create(PODS, pod)
        run.is_pod_new = True
    except ApiError as error:
        run.pod_expectations.creation_observed(run.key)
        message = f"The launcher pod could not be created: {error}"
        if isinstance(error, Forbidden) and "violates PodSecurity" in str(error):
            message = (
                f"The launcher pod of {key_of(run.original)} was refused: the namespace must be privileged "
                f"(label pod-security.kubernetes.io/enforce=privileged): {error}"
            )
        run.event(WARNING, names.FAILED_CREATE, message)
        raise SyncError(names.FAILED_CREATE, message) from error
    run.event(NORMAL, names.SUCCESSFUL_CREATE, f"Created launcher pod {name_of(run.pod)}")
