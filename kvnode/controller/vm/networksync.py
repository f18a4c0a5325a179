"""Interfaces put into and taken out of a running VM (``pkg/network/controllers/vm.go``)."""

from __future__ import annotations

import copy
from typing import Any

from kvnode.controller.equality import equal
from kvnode.controller.errors import SyncError
from kvnode.controller.jsonpatch import add, test
from kvnode.controller.meta import at, name_of, spec_of
from kvnode.controller.podnetworks import is_ordinal, secondary_networks
from kvnode.controller.vm.run import Run
from kvnode.kube.errors import ApiError
from kvnode.kube.objects import Object, is_deleting
from kvnode.kube.resources import VIRTUAL_MACHINE_INSTANCES

ABSENT = "absent"

Item = dict[str, Any]


async def follow_networks(run: Run, spec: dict[str, Any]) -> None:
    """Make the VMI's interfaces follow the template's spec, and drop from `spec` what has been unplugged.

    Raises:
        SyncError: the server refused.
    """
    vmi = run.vmi
    if vmi is not None and is_deleting(vmi):
        return
    plugged: set[Any] = set()
    if vmi is not None:
        interfaces, networks = _wanted(spec, vmi)
        await _patch(run, vmi, interfaces, networks)
        plugged = {one.get("name") for one in (*interfaces, *(at(vmi, "status", "interfaces") or ()))}
    devices = (spec.get("domain") or {}).get("devices") or {}
    mine = devices.get("interfaces") or []
    kept = [one for one in mine if one.get("state") != ABSENT or one.get("name") in plugged]
    if len(kept) != len(mine):
        devices["interfaces"] = kept
        spec["networks"] = _networks_of(spec.get("networks") or [], kept)


def _wanted(spec: dict[str, Any], vmi: Object) -> tuple[list[Item], list[Item]]:
    """The VMI's interfaces and networks, as the VM's template has them."""
    running = spec_of(vmi)
    interfaces: list[Item] = copy.deepcopy(at(running, "domain", "devices", "interfaces") or [])
    networks: list[Item] = copy.deepcopy(running.get("networks") or [])
    named = {one.get("name"): one for one in interfaces}
    template_networks = {one.get("name"): one for one in spec.get("networks") or ()}
    for wanted in at(spec, "domain", "devices", "interfaces") or ():
        name, state = wanted.get("name"), wanted.get("state") or ""
        present = named.get(name)
        if present is None:
            pluggable = wanted.get("bridge") is not None or wanted.get("sriov") is not None
            if state != ABSENT and pluggable:
                interfaces.append(copy.deepcopy(wanted))
                networks.append(copy.deepcopy(template_networks.get(name) or {"name": name}))
        elif state != (present.get("state") or "") != ABSENT and not (
            state == ABSENT and _has_ordinal_names(vmi)
        ):
            present["state"] = state
    statuses = {one.get("name") for one in at(vmi, "status", "interfaces") or ()}
    interfaces = [one for one in interfaces if one.get("state") != ABSENT or one.get("name") in statuses]
    networks = _networks_of(networks, interfaces)
    for network in networks:
        multus = (template_networks.get(network.get("name")) or {}).get("multus")
        if multus is not None and network.get("multus") is not None:
            network["multus"]["networkName"] = multus.get("networkName", "")
    return interfaces, networks


def _has_ordinal_names(vmi: Object) -> bool:
    """Whether the pod's secondary interfaces are numbered, as they were before v1.0; unknown names count as such."""
    secondary = secondary_networks(spec_of(vmi).get("networks") or ())
    if not secondary:
        return False
    names = {one.get("name"): one.get("podInterfaceName") for one in at(vmi, "status", "interfaces") or ()}
    known = next((names[one["name"]] for one in secondary if names.get(one["name"])), None)
    return known is None or is_ordinal(known)


def _networks_of(networks: list[Item], interfaces: list[Item]) -> list[Item]:
    names = {one.get("name") for one in interfaces}
    return [one for one in networks if one.get("name") in names]


async def _patch(run: Run, vmi: Object, interfaces: list[Item], networks: list[Item]) -> None:
    running = spec_of(vmi)
    old_interfaces, old_networks = at(running, "domain", "devices", "interfaces"), running.get("networks")
    if equal(old_interfaces or [], interfaces) and equal(old_networks or [], networks):
        return
    patch = [
        test("/spec/networks", old_networks),
        add("/spec/networks", networks),
        test("/spec/domain/devices/interfaces", old_interfaces),
        add("/spec/domain/devices/interfaces", interfaces),
    ]
    try:
        await run.world.api.patch(VIRTUAL_MACHINE_INSTANCES, name_of(vmi), run.namespace, patch)
    except ApiError as error:
        raise SyncError(
            "HotPlugNetworkInterfaceError", f"the VMI's networks could not be changed: {error}"
        ) from error
