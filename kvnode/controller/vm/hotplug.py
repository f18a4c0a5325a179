"""Hotplug volumes of a running VM that come and go with the template (``pkg/storage/hotplug``)."""

from __future__ import annotations

import copy
from typing import Any

from kvnode.api.phases import Phase
from kvnode.controller.equality import equal
from kvnode.controller.errors import SyncError
from kvnode.controller.instance import phase
from kvnode.controller.jsonpatch import add, replace, test
from kvnode.controller.meta import at, name_of, spec_of
from kvnode.controller.vm.restart import MIGRATION
from kvnode.controller.vm.run import Run
from kvnode.controller.volumes import is_declared_hotplug
from kvnode.kube.errors import ApiError
from kvnode.kube.objects import Object
from kvnode.kube.resources import VIRTUAL_MACHINE_INSTANCES

Item = dict[str, Any]
Named = dict[Any, Item]


async def follow_volumes(run: Run, spec: dict[str, Any]) -> None:
    """Make the VMI's hotplug volumes and their disks follow the template's spec.

    Raises:
        SyncError: the server refused.
    """
    config, vmi = run.settings.config, run.vmi
    if config.gate("HotplugVolumes") or not config.gate("DeclarativeHotplugVolumes"):
        return
    if spec_of(run.vm).get("updateVolumesStrategy") == MIGRATION:
        return
    if vmi is None or phase(vmi) != Phase.RUNNING:
        return
    old_volumes: list[Item] = spec_of(vmi).get("volumes") or []
    old_disks: list[Item] = at(vmi, "spec", "domain", "devices", "disks") or []
    volumes = _volumes(spec, vmi, old_volumes)
    disks = _disks(spec, old_disks, volumes)
    if equal(old_volumes, volumes) and equal(old_disks, disks):
        return
    patch = [
        test("/spec/volumes", spec_of(vmi).get("volumes")),
        test("/spec/domain/devices/disks", at(vmi, "spec", "domain", "devices", "disks")),
        (replace if old_volumes else add)("/spec/volumes", volumes),
        (replace if old_disks else add)("/spec/domain/devices/disks", disks),
    ]
    try:
        await run.world.api.patch(VIRTUAL_MACHINE_INSTANCES, name_of(vmi), run.namespace, patch)
    except ApiError as error:
        raise SyncError("HotPlugVolumeError", f"the VMI's volumes could not be changed: {error}") from error


def _by_name(items: Any) -> Named:
    return {one.get("name"): one for one in items or ()}


def _volumes(spec: dict[str, Any], vmi: Object, old: list[Item]) -> list[Item]:
    wanted = _by_name(spec.get("volumes"))
    kept = [one for one in old if not is_declared_hotplug(one) or _is_still_wanted(one, wanted)]
    # A volume that is being unplugged has a status for as long as that takes.
    taken = {*_by_name(old), *_by_name(at(vmi, "status", "volumeStatus"))}
    new = [one for name, one in wanted.items() if is_declared_hotplug(one) and name not in taken]
    return copy.deepcopy([*kept, *new])


def _is_still_wanted(volume: Item, wanted: Named) -> bool:
    now = wanted.get(volume.get("name"))
    if now is None:
        return False
    return not is_declared_hotplug(now) or equal(now, volume)


def _disks(spec: dict[str, Any], old: list[Item], volumes: list[Item]) -> list[Item]:
    there, wanted = _by_name(volumes), _by_name(at(spec, "domain", "devices", "disks"))
    declared = _by_name(spec.get("volumes"))
    kept = [one for one in old if one.get("name") in there or _keeps_drive(one, wanted, declared)]
    new = [
        one
        for name, one in wanted.items()
        if is_declared_hotplug(there.get(name) or {}) and name not in _by_name(old)
    ]
    return copy.deepcopy([*kept, *new])


def _keeps_drive(disk: Item, wanted: Named, declared: Named) -> bool:
    """Whether a disk without its volume stays: a CD-ROM drive may be empty."""
    now = wanted.get(disk.get("name"))
    if now is None:
        return False
    both_drives = now.get("cdrom") is not None and disk.get("cdrom") is not None
    return both_drives or disk.get("name") not in declared
