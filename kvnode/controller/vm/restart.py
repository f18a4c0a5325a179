"""Whether a change of the VM waits for its restart (``vm.go:2860-3064``, ``network/vmliveupdate/restart.go``)."""

from __future__ import annotations

import copy
from typing import Any

from kvnode.controller import conditions
from kvnode.controller.equality import equal, equal_specs
from kvnode.controller.meta import at, spec_of
from kvnode.controller.vm.run import Run
from kvnode.controller.vm.start import RESTART_REQUIRED
from kvnode.controller.volumes import is_hotplugged
from kvnode.kube.objects import Object

MIGRATION = "Migration"
"""``spec.updateVolumesStrategy``: a changed claim is migrated to."""

Spec = dict[str, Any]


def require_restart(vm: Object, message: str, now: str) -> None:
    """Say in the VM's status that it must be restarted."""
    conditions.update(vm, conditions.make(RESTART_REQUIRED, "True", message=message, transition=now))


def judge_restart(run: Run, started: dict[str, Any] | None) -> bool:
    """Set or take away the condition RestartRequired; whether it was set.

    `started` is the VM's spec when its VMI was made; None when that is not known, and nothing is judged.
    """
    if started is None:
        return False
    current: Spec = run.template.get("spec") or {}
    before: Spec = copy.deepcopy((started.get("template") or {}).get("spec") or {})
    _overlook_volumes(before, current, spec_of(run.vm).get("updateVolumesStrategy") == MIGRATION)
    if run.settings.config.live_update:
        _overlook_live_updates(before, current)
    if run.vmi is not None:
        if not needs_restart_for_networks(current, spec_of(run.vmi)):
            _copy(before, current, "domain", "devices", "interfaces")
            _copy(before, current, "networks")
        _overlook_firmware_uuid(before, current, spec_of(run.vmi))
    if not equal_specs(before, current):
        message = "the template was changed in a field that a running VM cannot follow"
        require_restart(run.vm, message, run.now())
        return True
    conditions.remove(run.vm, RESTART_REQUIRED)
    return False


def _copy(target: Spec, source: Spec, *path: str) -> None:
    """Make what is at a path of `target` what is there in `source`."""
    *parents, last = path
    value = at(source, *path)
    for key in parents:
        if target.get(key) is None:
            if value is None:
                return
            target[key] = {}
        target = target[key]
    if value is None:
        target.pop(last, None)
    else:
        target[last] = copy.deepcopy(value)


def _overlook_volumes(before: Spec, current: Spec, migrates: bool) -> None:
    old = {one.get("name"): one for one in before.get("volumes") or ()}
    new = {one.get("name"): one for one in current.get("volumes") or ()}
    disks_follow = _disks_follow(before, current, old, new)
    if _volumes_follow(old, new, migrates):
        _copy(before, current, "volumes")
    if disks_follow:
        _copy(before, current, "domain", "devices", "disks")


def _volumes_follow(old: dict[Any, Spec], new: dict[Any, Spec], migrates: bool) -> bool:
    for name, volume in new.items():
        if is_hotplugged(volume):
            continue
        if name not in old:
            return False
        on_claim = volume.get("persistentVolumeClaim") is not None or volume.get("dataVolume") is not None
        if not (migrates and on_claim) and not equal(old[name], volume):
            return False
    return all(is_hotplugged(volume) for name, volume in old.items() if name not in new)


def _disks_follow(before: Spec, current: Spec, old: dict[Any, Spec], new: dict[Any, Spec]) -> bool:
    old_disks = {one.get("name"): one for one in at(before, "domain", "devices", "disks") or ()}
    new_disks = {one.get("name"): one for one in at(current, "domain", "devices", "disks") or ()}
    for name, disk in new_disks.items():
        if is_hotplugged(new.get(name) or {}):
            continue
        if name not in old_disks or not equal(old_disks[name], disk):
            return False
    for name, disk in old_disks.items():
        if name in new_disks:
            continue
        if (name in old and not is_hotplugged(old[name])) or disk.get("cdrom") is not None:
            return False
    return True


def _overlook_live_updates(before: Spec, current: Spec) -> None:
    if at(before, "domain", "cpu") is not None and at(current, "domain", "cpu") is not None:
        _copy(before, current, "domain", "cpu", "sockets")
    if at(current, "domain", "memory", "guest") is not None:
        _copy(before, current, "domain", "memory", "guest")
    for field in ("nodeSelector", "affinity", "tolerations"):
        _copy(before, current, field)


def _overlook_firmware_uuid(before: Spec, current: Spec, running: Spec) -> None:
    """A VM from before may have been given the UUID that its VMI has had all along."""
    ours, theirs = at(current, "domain", "firmware"), at(running, "domain", "firmware")
    if ours is not None and theirs is not None and ours.get("uuid", "") == theirs.get("uuid", ""):
        _copy(before, current, "domain", "firmware", "uuid")


def needs_restart_for_networks(wanted: Spec, running: Spec) -> bool:
    """Whether interfaces or networks changed in more than can be plugged."""
    has_pod, had_pod = (
        any(n.get("pod") is not None for n in s.get("networks") or ()) for s in (wanted, running)
    )
    if has_pod and not had_pod:
        return True
    interfaces = (
        _by_name(at(one, "domain", "devices", "interfaces"), _without_state) for one in (wanted, running)
    )
    networks = (_by_name(one.get("networks"), _without_definition) for one in (wanted, running))
    return any(
        name not in now or not equal(now[name], item)
        for now, then in (tuple(interfaces), tuple(networks))
        for name, item in then.items()
    )


def _by_name(items: Any, strip: Any) -> dict[Any, Spec]:
    return {one.get("name"): strip(one) for one in items or ()}


def _without_state(interface: Spec) -> Spec:
    return {key: value for key, value in interface.items() if key != "state"}


def _without_definition(network: Spec) -> Spec:
    multus = network.get("multus")
    if multus is None:
        return network
    return {**network, "multus": {key: value for key, value in multus.items() if key != "networkName"}}
