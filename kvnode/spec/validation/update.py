"""Which changes of an object that is there already KubeVirt v1.9 admits.

(``pkg/virt-api/webhooks/validating-webhook/admitters/vmi-update-admitter.go``, ``pkg/storage/admitters``)
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from kvnode.api.quantity import Quantity
from kvnode.spec.cause import DUPLICATE, INVALID, NOT_SUPPORTED, REQUIRED, Cause, shown
from kvnode.spec.config import ClusterConfig
from kvnode.spec.fields import get_mapping
from kvnode.spec.normal import normal_instance
from kvnode.spec.validation.instance import RESERVED_LABELS
from kvnode.spec.validation.review import Json


def reserved_label_causes(new: Mapping[str, Any], old: Mapping[str, Any]) -> list[Cause]:
    """Labels that are KubeVirt's own, changed by somebody else."""
    before, after = _labels(old), _labels(new)
    changed = sorted(name for name in RESERVED_LABELS if before.get(name) != after.get(name))
    if not changed:
        return []
    return [
        Cause("metadata.labels", NOT_SUPPORTED, f"KubeVirt alone changes {', '.join(changed)}: leave them")
    ]


def _labels(obj: Mapping[str, Any]) -> Mapping[str, Any]:
    return get_mapping(get_mapping(obj, "metadata", ""), "labels", "metadata.")


def same_spec(new: Mapping[str, Any], old: Mapping[str, Any]) -> bool:
    """Whether the specs of two VirtualMachineInstances mean the same, however quantities and empty lists are written.

    Raises:
        FieldError: a field has another type than the API declares.
    """
    if new.get("spec") == old.get("spec"):
        return True
    return bool(_without_empty_lists(_normal_spec(new)) == _without_empty_lists(_normal_spec(old)))


def _normal_spec(vmi: Mapping[str, Any]) -> Json:
    spec: Json = normal_instance({"spec": vmi.get("spec")})["spec"]
    return spec


def _without_empty_lists(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _without_empty_lists(item) for name, item in value.items() if item != []}
    if isinstance(value, list):
        return [_without_empty_lists(item) for item in value]
    return value


def hotplug_causes(new: Mapping[str, Any], old: Mapping[str, Any], config: ClusterConfig) -> list[Cause]:
    """What may not change in the spec of a running VMI, not even by KubeVirt's own accounts.

    Args:
        new, old: VirtualMachineInstances of valid types; they are not changed.
        config: the cluster's settings.

    Raises:
        FieldError: a field has another type than the API declares.
    """
    after, before = normal_instance(new), normal_instance(old)
    return (
        _limits(after["spec"]["domain"], before["spec"]["domain"])
        or _utility_volumes(after, before, config)
        or _volumes(after, before, config)
    )


def _limits(after: Json, before: Json) -> list[Cause]:
    """What was set aside for plugging stays (``vmi-update-admitter.go:193-229``)."""
    sockets = [domain.get("cpu", {}).get("maxSockets", 0) for domain in (after, before)]
    if sockets[0] != sockets[1]:
        message = f"is {sockets[1]} for as long as the VMI runs"
        return [Cause("spec.domain.cpu.maxSockets", INVALID, message)]
    most = [domain.get("memory", {}).get("maxGuest") for domain in (after, before)]
    if None not in most and Quantity(most[0]) != Quantity(most[1]):
        message = f"is {most[1]} for as long as the VMI runs"
        return [Cause("spec.domain.memory.maxGuest", INVALID, message)]
    return []


def _permanent(old: Json) -> set[str]:
    """Names of the volumes that were there from the start."""
    found = old.get("status", {}).get("volumeStatus", [])
    return {item.get("name", "") for item in found if "hotplugVolume" not in item}


def _named(items: Iterable[Json]) -> dict[str, Json]:
    return {item.get("name", ""): item for item in items}


def _utility_volumes(new: Json, old: Json, config: ClusterConfig) -> list[Cause]:
    """Utility volumes come and go, and do not change (``storagehotplug.go:306-437``)."""
    listed = new["spec"].get("utilityVolumes", [])
    if listed and not config.gate("UtilityVolumes"):
        return [Cause("spec.utilityVolumes", INVALID, "needs the feature gate UtilityVolumes")]
    causes: list[Cause] = []
    ordinary, seen = _named(new["spec"].get("volumes", [])), set[str]()
    for index, volume in enumerate(listed):
        path, name = f"spec.utilityVolumes[{index}]", volume.get("name", "")
        if not name:
            causes.append(Cause(f"{path}.name", REQUIRED, "must be given"))
        if name in seen or name in ordinary:
            causes.append(
                Cause(f"{path}.name", DUPLICATE, f"is {shown(name)}, as another volume is: rename it")
            )
        seen.add(name)
        if not volume.get("claimName"):
            causes.append(Cause(f"{path}.claimName", REQUIRED, "must name a PersistentVolumeClaim"))
    if causes:
        return causes
    permanent, before = _permanent(old), _named(old["spec"].get("utilityVolumes", []))
    for index, volume in enumerate(listed):
        path, name = f"spec.utilityVolumes[{index}]", volume["name"]
        if name in permanent:
            return [Cause(path, INVALID, f"{shown(name)} is a volume of the VM's own: choose another name")]
        if name in before and before[name] != volume:
            return [Cause(path, INVALID, f"{shown(name)} cannot change while it is there: remove it first")]
    return []


def _volumes(new: Json, old: Json, config: ClusterConfig) -> list[Cause]:
    """Volumes from the start stay as they are, others are added and removed (``storagehotplug.go:36-300``)."""
    spec, disks = new["spec"], new["spec"]["domain"]["devices"].get("disks", [])
    volumes = _named(spec.get("volumes", []))
    mapped = {name for name, volume in volumes.items() if "memoryDump" not in volume}
    empty_drives = config.gate("DeclarativeHotplugVolumes")
    needed = len(spec["domain"]["devices"].get("filesystems", [])) + sum(
        disk.get("name") in mapped or not ("cdrom" in disk and empty_drives) for disk in disks
    )
    if needed != len(mapped):
        message = f"are {len(mapped)} for {needed} disks and filesystems: each needs one of its own"
        return [Cause("spec.volumes", INVALID, message)]
    before = _named(old["spec"].get("volumes", []))
    moved = {item.get("volumeName", "") for item in new.get("status", {}).get("migratedVolumes", [])}
    new_disks, old_disks = _named(disks), _named(old["spec"]["domain"]["devices"].get("disks", []))
    permanent = _permanent(old)
    missing = sorted(name for name in before if name in permanent and name not in volumes)
    if missing:
        return [Cause("spec.volumes", INVALID, f"{shown(missing[0])} was there from the start and must stay")]
    for index, (name, volume) in enumerate(volumes.items()):
        path = f"spec.volumes[{index}]"
        cause: Cause | None = None
        if name in permanent:
            if name not in before:
                cause = Cause(path, INVALID, f"{shown(name)} cannot come back while the VMI runs")
            elif name not in moved and (volume != before[name] or new_disks.get(name) != old_disks.get(name)):
                cause = Cause(path, INVALID, f"{shown(name)} and its disk cannot change while the VMI runs")
        elif name in before:
            cause = _kept(
                path, volume, before[name], (new_disks.get(name), old_disks.get(name)), moved=name in moved
            )
        else:
            cause = _added(path, volume, new_disks.get(name), name in old_disks)
        if cause is not None:
            return [cause]
    return []


def _kept(
    path: str, volume: Json, before: Json, disks: tuple[Json | None, Json | None], *, moved: bool
) -> Cause | None:
    """A plugged volume that stays (``storagehotplug.go:143-179``)."""
    name = volume.get("name", "")
    if volume != before and not moved:
        return Cause(path, INVALID, f"{shown(name)} cannot change while it is plugged in: remove it first")
    if "memoryDump" in volume:
        return None
    if disks[0] is None:
        return Cause(path, INVALID, f"{shown(name)} needs a disk of its name")
    if disks[0] != disks[1]:
        return Cause(path, INVALID, f"the disk of {shown(name)} cannot change while it is plugged in")
    return None


def _added(path: str, volume: Json, disk: Json | None, had_disk: bool) -> Cause | None:
    """A volume that is plugged in (``storagehotplug.go:180-211``)."""
    name = shown(volume.get("name", ""))
    if "memoryDump" in volume:
        return None
    if "dataVolume" not in volume and "persistentVolumeClaim" not in volume:
        return Cause(path, INVALID, f"{name} must be a dataVolume or persistentVolumeClaim to be plugged in")
    if disk is None:
        return Cause(path, INVALID, f"{name} needs a disk of its name")
    fault = None if had_disk else hotplug_disk_fault(disk)
    return None if fault is None else Cause(path, INVALID, f"the disk of {name} {fault}")


def hotplug_disk_fault(disk: Json) -> str | None:
    """Why a disk cannot be plugged into a running VM, None if it can (``storagehotplug.go:72-124``)."""
    kind = next((name for name in ("disk", "lun") if name in disk), None)
    if kind is None:
        return "must be a disk or lun"
    bus = disk[kind].get("bus", "")
    allowed = ("scsi", "virtio") if kind == "disk" else ("scsi",)
    if bus not in allowed:
        return f"has the bus {shown(bus)}: must be {' or '.join(allowed)}"
    if disk.get("dedicatedIOThread") and bus != "virtio":
        return "has a dedicatedIOThread, which needs the bus virtio"
    if disk.get("bootOrder", 1) < 1:
        return "has a bootOrder below 1"
    return None


def machine_update_causes(new: Mapping[str, Any], old: Mapping[str, Any]) -> list[Cause]:
    """What a snapshot or restore that is under way keeps from changing (``vm-storage-status.go``).

    `new` passed `validate_machine`.

    Raises:
        FieldError: `old` is no VirtualMachine.
    """
    status = get_mapping(new, "status", "")
    after, before = new["spec"], get_mapping(old, "spec", "")
    if status.get("snapshotInProgress") is not None:
        during = f"until the snapshot {shown(status['snapshotInProgress'])} is done"
        if _template_volumes(after) != _template_volumes(before):
            return [Cause("spec", NOT_SUPPORTED, f"the template's volumes cannot change {during}")]
        if any(after.get(name) != before.get(name) for name in ("running", "runStrategy")):
            return [Cause("spec", NOT_SUPPORTED, f"running and runStrategy cannot change {during}")]
    if status.get("restoreInProgress") is not None and _strategy(after) != _strategy(before):
        during = f"until the restore {shown(status['restoreInProgress'])} is done"
        return [Cause("spec", NOT_SUPPORTED, f"the run strategy cannot change {during}")]
    return []


def data_volume_namespace_causes(
    new: Mapping[str, Any], old: Mapping[str, Any] | None, namespace: str
) -> list[Cause]:
    """A DataVolume is made in its VM's namespace (``data-volume-template.go:38``); old ones may stay as they are."""
    templates = new["spec"].get("dataVolumeTemplates") or []
    if old is not None and templates == (get_mapping(old, "spec", "").get("dataVolumeTemplates") or []):
        return []
    return [
        Cause(
            f"spec.dataVolumeTemplates[{index}]",
            INVALID,
            f"is for the namespace {shown(named)}: must be the VM's",
        )
        for index, item in enumerate(templates)
        if (named := (item.get("metadata") or {}).get("namespace")) and named != namespace
    ]


def _template_volumes(spec: Mapping[str, Any]) -> Any:
    template = get_mapping(spec, "template", "spec.")
    return get_mapping(template, "spec", "spec.template.").get("volumes") or []


def _strategy(spec: Mapping[str, Any]) -> str:
    """The run strategy, also where ``running`` stands for it."""
    return str(spec.get("runStrategy") or ("Always" if spec.get("running") else "Halted"))
