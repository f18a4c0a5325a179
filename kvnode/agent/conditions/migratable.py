"""Whether a VMI can be moved to another node: LiveMigratable and StorageLiveMigratable.

``pkg/virt-handler/vm.go:1237-1420,1840-1930``, ``pkg/network/vmispec/interface.go:58``
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from kvnode.agent.conditions import listing
from kvnode.agent.parts import Recorder
from kvnode.agent.vmi import (
    Vmi,
    annotations_of,
    devices,
    interfaces,
    is_sev,
    launch_security,
    spec,
    status,
    volume_statuses,
    volumes,
)
from kvnode.api.phases import ConditionType
from kvnode.spec.config import ClusterConfig

BRIDGE_MIGRATION_ANNOTATION = "kubevirt.io/allow-pod-bridge-network-live-migration"
BLOCK_MIGRATION, LIVE_MIGRATION = "BlockMigration", "LiveMigration"

_SHARED = "live migration needs claims that can be shared (ReadWriteMany)"


@dataclass(frozen=True, slots=True)
class Node:
    """What the rules must know beside the VMI."""

    config: ClusterConfig
    host_cpu_model: str
    """Model that host-model stands for; "" when the node has none."""


@dataclass(frozen=True, slots=True)
class Obstacle:
    """Why a VMI cannot move."""

    reason: str
    message: str


Rule = Callable[[Vmi, Node], Obstacle | None]


def set_migratable(vmi: Vmi, node: Node, recorder: Recorder) -> None:
    """Set both conditions and ``status.migrationMethod`` of ``vmi``.

    A Warning is recorded where evictions are to migrate the VMI and cannot.
    """
    by_blocks, disks = check_volumes(vmi)
    obstacle = next(filter(None, (rule(vmi, node) for rule in _LIVE)), disks)
    current = vmi["status"]
    listing.replace(current, _condition(ConditionType.LIVE_MIGRATABLE, obstacle))
    current["migrationMethod"] = BLOCK_MIGRATION if by_blocks else LIVE_MIGRATION
    found = [one for one in (rule(vmi, node) for rule in _STORAGE) if one]
    listing.update(current, _condition(ConditionType.STORAGE_LIVE_MIGRATABLE, _joined(found)))
    if obstacle and _is_moved_by_eviction(vmi, node.config):
        recorder.event(
            vmi, "Warning", "Migrated", f"evictionStrategy asks for migration, but {obstacle.message}"
        )


def _condition(kind: ConditionType, obstacle: Obstacle | None) -> listing.Condition:
    if obstacle is None:
        return listing.make(kind.value, listing.TRUE)
    return listing.make(kind.value, listing.FALSE, reason=obstacle.reason, message=obstacle.message)


def _joined(found: list[Obstacle]) -> Obstacle | None:
    if not found:
        return None
    return Obstacle("NotMigratable", ", ".join(f"{one.reason}: {one.message}" for one in found))


def _is_moved_by_eviction(vmi: Vmi, config: ClusterConfig) -> bool:
    strategy = spec(vmi).get("evictionStrategy") or config.eviction_strategy
    if strategy == "LiveMigrateIfPossible":
        live = listing.find(vmi["status"], ConditionType.LIVE_MIGRATABLE)
        return live is not None and live.get("status") == listing.TRUE
    return strategy == "LiveMigrate"


def check_interfaces(vmi: Vmi, node: Node) -> Obstacle | None:
    """The interface on the pod's network must have a binding that survives a change of pods."""
    pod = next((net for net in spec(vmi).get("networks") or () if net.get("pod") is not None), None)
    if not interfaces(vmi) or pod is None:
        return None
    reason = "InterfaceNotLiveMigratable"
    primary = next((one for one in interfaces(vmi) if one.get("name") == pod.get("name")), None)
    if primary is None:
        return Obstacle(reason, f"no interface is connected to the pod's network {pod.get('name')}")
    if primary.get("masquerade") is not None or primary.get("passtBinding") is not None:
        return None
    if primary.get("bridge") is not None:
        allowed = BRIDGE_MIGRATION_ANNOTATION in annotations_of(vmi)
    else:
        plugin = node.config.network_bindings.get((primary.get("binding") or {}).get("name") or "")
        allowed = plugin is not None and plugin.get("migration") is not None
    if allowed:
        return None
    return Obstacle(reason, f"interface {primary.get('name')}: its binding to the pod's network cannot move")


def check_cpu(vmi: Vmi, node: Node) -> Obstacle | None:
    """host-model needs a node that has such a model."""
    cpu = (spec(vmi).get("domain") or {}).get("cpu") or {}
    if cpu.get("model") != "host-model" or node.host_cpu_model:
        return None
    name = status(vmi).get("nodeName") or "this node"
    return Obstacle("CPUModeLiveMigratable", f"node {name} has no CPU model that host-model could move with")


def check_host_devices(vmi: Vmi, node: Node) -> Obstacle | None:
    """Devices of the host stay where they are; one mediated GPU can move where the gate is open."""
    gpus = devices(vmi).get("gpus") or []
    if devices(vmi).get("hostDevices"):
        message = "the VMI uses a PCI device of the host"
    elif len(gpus) > 1:
        message = "the VMI uses more than one GPU"
    elif gpus and not node.config.gate("VGPULiveMigration"):
        message = "the VMI uses a GPU, and feature gate VGPULiveMigration is off"
    elif gpus and not _is_mediated(gpus[0], node.config):
        message = "the VMI's GPU is not a mediated device"
    else:
        return None
    return Obstacle("HostDeviceNotLiveMigratable", message)


def _is_mediated(gpu: Mapping[str, Any], config: ClusterConfig) -> bool:
    permitted = (config.permitted_host_devices or {}).get("mediatedDevices") or ()
    return any(one.get("resourceName") == gpu.get("deviceName") for one in permitted)


def check_encryption(vmi: Vmi, _node: Node) -> Obstacle | None:
    """The memory of a confidential guest cannot be read by the node it is on."""
    if is_sev(vmi):
        return Obstacle("SEVNotLiveMigratable", "the VMI uses SEV")
    if (launch_security(vmi) or {}).get("tdx") is not None:
        return Obstacle("TDXNotLiveMigratable", "the VMI uses TDX")
    return None


def check_secure_execution(vmi: Vmi, _node: Node) -> Obstacle | None:
    """On s390x any launch security is Secure Execution."""
    if launch_security(vmi) is None or spec(vmi).get("architecture") != "s390x":
        return None
    return Obstacle("SecureExecutionNotLiveMigratable", "the VMI uses Secure Execution")


def check_reservation(vmi: Vmi, _node: Node) -> Obstacle | None:
    """A SCSI reservation is held by one host."""
    if not any((disk.get("lun") or {}).get("reservation") for disk in devices(vmi).get("disks") or ()):
        return None
    return Obstacle(
        "PersistentReservationNotLiveMigratable", "a disk of the VMI uses SCSI persistent reservations"
    )


def check_tsc(vmi: Vmi, _node: Node) -> Obstacle | None:
    """Reenlightenment needs a TSC frequency that all nodes can give.

    A guest with invtsc needs it to boot at all, and is not judged here (``topology/tsc.go:120-175``).
    """
    hints = status(vmi).get("topologyHints") or {}
    if (hints.get("tscFrequency") or 0) > 0:
        return None
    domain = spec(vmi).get("domain") or {}
    features = (domain.get("cpu") or {}).get("features") or ()
    if any(one.get("name") == "invtsc" and one.get("policy") in ("require", "force") for one in features):
        return None
    hyperv = (domain.get("features") or {}).get("hyperv") or {}
    if not (hyperv.get("reenlightenment") or {}).get("enabled"):
        return None
    return Obstacle(
        "NoTSCFrequencyNotLiveMigratable",
        "the VMI uses Hyper-V reenlightenment, and the cluster has no common TSC frequency",
    )


def check_hyperv_passthrough(vmi: Vmi, _node: Node) -> Obstacle | None:
    """What Hyper-V features are passed through depends on the node."""
    features = (spec(vmi).get("domain") or {}).get("features") or {}
    if not (features.get("hypervPassthrough") or {}).get("enabled"):
        return None
    return Obstacle("HypervPassthroughNotLiveMigratable", "the VMI uses Hyper-V passthrough")


_LIVE: tuple[Rule, ...] = (
    check_interfaces,
    check_cpu,
    check_host_devices,
    check_encryption,
    check_secure_execution,
    check_tsc,
    check_hyperv_passthrough,
)
_STORAGE: tuple[Rule, ...] = (
    check_interfaces,
    check_cpu,
    check_host_devices,
    check_encryption,
    check_reservation,
    check_tsc,
    check_hyperv_passthrough,
)


def check_volumes(vmi: Vmi) -> tuple[bool, Obstacle | None]:
    """Whether a migration would have to copy disks, and the first volume that keeps the VMI here."""
    by_blocks = bool(status(vmi).get("migratedVolumes"))
    claims = {one.get("name"): one.get("persistentVolumeClaimInfo") for one in volume_statuses(vmi)}
    shared = {one.get("name") for one in devices(vmi).get("filesystems") or ()}
    fixed = {one.get("name") for one in devices(vmi).get("disks") or () if _is_read_only(one)}
    for volume in volumes(vmi):
        name = volume.get("name")
        claim = claims.get(name)
        is_claim = volume.get("persistentVolumeClaim") is not None or volume.get("dataVolume") is not None
        if is_claim or (volume.get("hostDisk") is not None and claim is not None):
            if claim is None:
                return True, _fixed(
                    f"volume {name}: it is not known whether its claim can be shared; {_SHARED}"
                )
            if not _is_shared(claim) and not _is_migrated(vmi, name):
                return True, _fixed(f"volume {name}: its claim cannot be shared; {_SHARED}")
        elif (disk := volume.get("hostDisk")) is not None:
            if not disk.get("shared"):
                return True, _fixed(f"volume {name}: its host disk is not shared between nodes")
        elif name not in shared and name not in fixed:
            by_blocks = True
    return by_blocks, None


def _fixed(message: str) -> Obstacle:
    return Obstacle("DisksNotLiveMigratable", message)


def _is_shared(claim: Mapping[str, Any]) -> bool:
    return "ReadWriteMany" in (claim.get("accessModes") or ())


def _is_migrated(vmi: Vmi, name: object) -> bool:
    return any(one.get("volumeName") == name for one in status(vmi).get("migratedVolumes") or ())


def _is_read_only(disk: Mapping[str, Any]) -> bool:
    cdrom = disk.get("cdrom")
    return cdrom is not None and cdrom.get("readonly") is not False
