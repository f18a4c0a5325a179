"""How a VMI goes from phase to phase (``life.go:330-560``)."""

from __future__ import annotations

from collections.abc import Callable

from kvnode.api.names import NODE_NAME_LABEL, VIRTUAL_MACHINE
from kvnode.api.phases import Phase
from kvnode.api.quantity import Quantity
from kvnode.controller import conditions, names
from kvnode.controller.claimnames import claim_name
from kvnode.controller.errors import SyncError
from kvnode.controller.instance import (
    is_decentralized_migration,
    is_migration_completed,
    is_migration_target,
    is_target_node_known,
    migration,
    phase,
    vcpus,
)
from kvnode.controller.meta import annotations_of, at, labels_of, put, remove_finalizer, spec_of, status_of
from kvnode.controller.ports import WARNING
from kvnode.controller.vmi.interfaces import tell_interfaces, tell_migration_need
from kvnode.controller.vmi.pods import (
    SUCCEEDED,
    image_trouble,
    is_down,
    is_failing,
    is_going_down,
    is_ready,
    is_temporary,
    node_of,
    phase_of,
)
from kvnode.controller.vmi.run import Run
from kvnode.controller.vmi.topology import choose_frequency
from kvnode.controller.vmi.volumestatus import tell_volumes
from kvnode.controller.volumes import WAIT_FOR_FIRST_CONSUMER
from kvnode.controller.volumes import phase_of as volume_phase
from kvnode.kube.objects import Object, controller_of, is_deleting, uid_of

POD_SCHEDULED = "PodScheduled"
PROVISIONING = "Provisioning"

Error = SyncError | None


class UnknownPhaseError(Exception):
    """A VMI is in a phase that there is not."""


def move(run: Run, error: Error) -> Error:
    """Set the phase and what goes with it; the answer is the error that the status is to tell.

    Raises:
        UnknownPhaseError: the VMI is in a phase that there is not.
    """
    step = _STEPS.get(phase(run.original))
    if step is None:
        raise UnknownPhaseError(
            f"status.phase: {phase(run.original)!r} is no phase of a VirtualMachineInstance"
        )
    pod = run.pod if run.pod is not None and not is_temporary(run.pod) else None
    return step(run, pod, error)


def _set(run: Run, new: Phase) -> None:
    status_of(run.vmi)["phase"] = str(new)


def _fail(run: Run) -> None:
    """The pod is gone: a VM that was to be received waits on, any other has failed."""
    _set(run, Phase.WAITING_FOR_SYNC if is_migration_target(run.vmi) else Phase.FAILED)


def _unprocessed(run: Run, pod: Object | None, error: Error) -> Error:
    vmi = run.original
    phases = [volume_phase(one) for one in run.data_volumes]
    if pod is not None:
        _set(run, Phase.SCHEDULING)
        quality = at(pod, "status", "qosClass")
        if run.is_pod_new and quality:
            status_of(run.vmi)["qosClass"] = quality  # it needs no write of its own
    elif is_deleting(vmi) or "Failed" in phases:
        _set(run, Phase.FAILED)
    elif is_migration_target(vmi) and not is_target_node_known(vmi):
        _set(run, Phase.WAITING_FOR_SYNC)
        choose_frequency(run)
    else:
        _set(run, Phase.PENDING)
        choose_frequency(run)
        if WAIT_FOR_FIRST_CONSUMER in phases:
            _tell_provisioning(run)
        if error is not None and error.reason == names.FAILED_PVC_NOT_FOUND:
            conditions.remove(run.vmi, POD_SCHEDULED)
            made = conditions.make(POD_SCHEDULED, "False", "Unschedulable", error.message)
            conditions.append(run.vmi, made)
    return error


def _tell_provisioning(run: Run) -> None:
    """A volume is filled once the temporary pod has bound its claim."""
    if not conditions.has(run.vmi, PROVISIONING):
        conditions.append(run.vmi, conditions.make(PROVISIONING, "True"))
    if run.pod is not None:
        _follow_scheduling(run, run.pod)
        if is_failing(run.pod):
            _set(run, Phase.FAILED)


def _follow_scheduling(run: Run, pod: Object) -> None:
    """Say that the pod cannot be scheduled, for as long as that is so."""
    found = conditions.find(pod, POD_SCHEDULED)
    if found is None or found.get("status") != "False":
        conditions.remove(run.vmi, POD_SCHEDULED)
    elif not conditions.has(run.vmi, POD_SCHEDULED):
        fields = ("type", "status", "reason", "message", "lastProbeTime", "lastTransitionTime")
        conditions.append(run.vmi, {key: found[key] for key in fields if found.get(key)})


def _scheduling(run: Run, pod: Object | None, error: Error) -> Error:
    conditions.remove(run.vmi, PROVISIONING)
    if pod is None:
        _fail(run)
        return error
    put(status_of(run.vmi), "qosClass", at(pod, "status", "qosClass"))
    _follow_scheduling(run, pod)
    if trouble := image_trouble(pod, names.IMAGE_PULL_REASONS):
        error = SyncError(*trouble)
    if is_ready(pod) and not is_deleting(run.original):
        if _lacks_cpus(run, pod):
            message = "the VM is to have CPUs of its own, but its pod's QoS class is not Guaranteed"
            run.event(WARNING, names.FAILED_GUARANTEE_RESOURCES, message)
            return SyncError(names.FAILED_GUARANTEE_RESOURCES, message)
        _hand_over(run, pod)
    elif is_going_down(pod):
        _fail(run)
    return error


def hands_over(run: Run, pod: Object) -> bool:
    """Whether this pass gives the VMI to the node of its pod."""
    ready = phase(run.original) == Phase.SCHEDULING and is_ready(pod)
    return ready and not is_deleting(run.original) and not _lacks_cpus(run, pod)


def _lacks_cpus(run: Run, pod: Object) -> bool:
    """Whether the VM is to have CPUs of its own, and its pod gets none."""
    dedicated = at(run.original, "spec", "domain", "cpu", "dedicatedCpuPlacement")
    return bool(dedicated) and at(pod, "status", "qosClass") != "Guaranteed"


def _hand_over(run: Run, pod: Object) -> None:
    """Give the VMI to the node of its pod: phase, label and node name are what the node goes by."""
    vmi, node = run.vmi, node_of(pod)
    tell_volumes(run, pod)
    tell_interfaces(vmi, pod)
    _set(run, Phase.SCHEDULED)
    vmi["metadata"]["labels"] = {**labels_of(vmi), NODE_NAME_LABEL: node}
    status = status_of(vmi)
    put(status, "nodeName", node)
    if names.MIGRATION_TRANSPORT_ANNOTATION in annotations_of(pod):
        status["migrationTransport"] = "Unix"


def _scheduled(run: Run, pod: Object | None, error: Error) -> Error:
    vmi = run.vmi
    receives = is_migration_target(vmi)
    failed = receives and bool(migration(vmi).get("failed"))
    if pod is not None and not (receives and is_down(pod)) and not failed:
        tell_volumes(run, pod)
        return error
    _fail(run)
    state = migration(vmi)
    if receives and state:
        now = run.now()
        status_of(vmi)["migrationState"] = {**state, "failed": True, "completed": True, "endTimestamp": now}
    return error


def _running(run: Run, pod: Object | None, error: Error) -> Error:
    vmi = run.original
    if pod is None:
        _set(run, Phase.FAILED)
        return error
    if phase_of(pod) == SUCCEEDED and is_decentralized_migration(vmi) and is_migration_completed(vmi):
        _set(run, Phase.SUCCEEDED)
        return error
    tell_volumes(run, pod)
    tell_interfaces(run.vmi, pod)
    _tell_changes(run)
    tell_migration_need(run, pod)
    return error


def _tell_changes(run: Run) -> None:
    """Say what was changed and is not in the guest yet: CPUs, memory, volumes."""
    vmi, status, domain = run.vmi, status_of(run.vmi), spec_of(run.vmi).get("domain") or {}
    topology, cpu = status.get("currentCPUTopology"), domain.get("cpu")
    if topology is not None and (cpu or {}).get("maxSockets") and vcpus(cpu) != vcpus(topology):
        _tell_change(vmi, "HotVCPUChange")
    memory = domain.get("memory") or {}
    if (
        status.get("memory") is not None
        and memory.get("guest") is not None
        and memory.get("maxGuest") is not None
    ):
        requested = Quantity.from_json(status["memory"].get("guestRequested") or 0)
        if Quantity.from_json(memory["guest"]).value != requested.value:
            _tell_change(vmi, "HotMemoryChange")
            if ratio := run.settings.config.additional_guest_memory_overhead_ratio:
                vmi["metadata"]["labels"] = {**labels_of(vmi), names.OVERHEAD_RATIO_LABEL: ratio}
    moved = {at(one, "sourcePVCInfo", "claimName") for one in status.get("migratedVolumes") or ()}
    claims = [name for volume in spec_of(vmi).get("volumes") or () if (name := claim_name(volume))]
    if moved and any(name not in moved for name in claims) and not conditions.has(vmi, "VolumesChange"):
        message = "the VM's volumes are to be migrated"
        conditions.update(
            vmi, conditions.make("VolumesChange", "True", message=message, transition=run.now())
        )


def _tell_change(vmi: Object, kind: str) -> None:
    if not conditions.has(vmi, kind):
        conditions.append(vmi, conditions.make(kind, "True"))


def _waiting(run: Run, pod: Object | None, error: Error) -> Error:
    vmi = run.vmi
    receives = is_migration_target(vmi)
    failed = receives and bool(migration(vmi).get("failed"))
    if is_deleting(run.original):
        _let_go(run)
    elif pod is not None and not failed and not (receives and is_down(pod)):
        _set(run, Phase.SCHEDULING)
    return error


def _let_go(run: Run) -> None:
    remove_finalizer(run.vmi, names.OLD_VMI_FINALIZER)
    remove_finalizer(run.vmi, names.VMI_FINALIZER)
    _forget_owner(run)


def _forget_owner(run: Run) -> None:
    """Nobody waits to see how a VMI ended whose VM is gone."""
    owner = controller_of(run.original)
    if owner is not None and owner.get("kind") == VIRTUAL_MACHINE:
        vm = run.caches.vms.get(f"{run.namespace}/{owner.get('name')}")
        if vm is not None and uid_of(vm) == owner.get("uid"):
            return
    remove_finalizer(run.vmi, names.VM_FINALIZER)


def _final(run: Run, _pod: Object | None, error: Error) -> Error:
    if run.pods():
        _forget_owner(run)
        return error
    _let_go(run)
    kept = {key: value for key, value in labels_of(run.vmi).items() if key != names.OUTDATED_IMAGE_LABEL}
    put(run.vmi["metadata"], "labels", kept)
    status_of(run.vmi).pop("launcherContainerImageVersion", None)
    return error


_STEPS: dict[str, Callable[[Run, Object | None, Error], Error]] = {
    Phase.UNSET: _unprocessed,
    Phase.PENDING: _unprocessed,
    Phase.SCHEDULING: _scheduling,
    Phase.SCHEDULED: _scheduled,
    Phase.RUNNING: _running,
    Phase.SUCCEEDED: _final,
    Phase.FAILED: _final,
    Phase.WAITING_FOR_SYNC: _waiting,
}
