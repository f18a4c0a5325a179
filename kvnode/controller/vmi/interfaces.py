"""The VMI's interfaces, as its pod has them (``pkg/network/controllers/vmi.go``, ``pkg/network/migration``)."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from kvnode.controller import conditions
from kvnode.controller.instance import is_migrating, moment
from kvnode.controller.meta import at, namespace_of, put, spec_of, status_of
from kvnode.controller.podnetworks import (
    network_statuses,
    primary_interface,
    secondary_interfaces,
    secondary_networks,
)
from kvnode.controller.vmi.run import Run
from kvnode.kube.objects import Object

MULTUS = "multus-status"
DOMAIN = "domain"
MIGRATION_REQUIRED = "MigrationRequired"

GRACE = 15.0
"""Seconds in which another controller may attach an interface without a migration."""

RECHECK = 10.0

Item = dict[str, Any]


def tell_interfaces(vmi: Object, pod: Object) -> None:
    """Have the pod's interfaces in the VMI's status, and keep what the node has told of them."""
    networks = spec_of(vmi).get("networks") or []
    known = {one.get("name"): one for one in at(vmi, "status", "interfaces") or ()}
    statuses = network_statuses(pod)
    made: list[Item] = []
    primary = next((one for one in networks if _is_primary(one)), None)
    if primary is not None:
        old = known.get(primary["name"]) or {"name": primary["name"]}
        made.append({**old, "podInterfaceName": primary_interface(statuses)})
    made += _secondary(networks, known, statuses)
    claimed = {one.get("name") for one in networks if one.get("resourceClaim") is not None}
    named = {one.get("name") for one in networks}
    told = list(at(vmi, "status", "interfaces") or ())
    made += [one for one in told if one.get("name") in claimed]
    made += [one for one in told if one.get("name") not in named]
    put(status_of(vmi), "interfaces", made)


def _is_primary(network: Item) -> bool:
    return network.get("pod") is not None or bool((network.get("multus") or {}).get("default"))


def _secondary(networks: list[Item], known: dict[Any, Item], statuses: list[Item]) -> list[Item]:
    attached = {one.get("interface") for one in statuses}
    made: list[Item] = []
    for name, interface in secondary_interfaces(networks, statuses).items():
        old = known.get(name)
        if interface not in attached and old is None:
            continue
        sources = [
            one for one in str((old or {}).get("infoSource") or "").split(", ") if one and one != MULTUS
        ]
        if interface in attached:
            sources.append(MULTUS)
        new = {**(old or {"name": name}), "podInterfaceName": interface}
        put(new, "infoSource", _joined(old, sources))
        made.append(new)
    return made


def _joined(old: Item | None, sources: list[str]) -> str:
    """The sources as text; those that say the same keep the order they have."""
    text = str((old or {}).get("infoSource") or "")
    return text if set(filter(None, text.split(", "))) == set(sources) else ", ".join(sources)


def tell_migration_need(run: Run, pod: Object) -> None:
    """Say whether the VM must migrate to get the networks that it asks for (``life.go:1183``)."""
    vmi, now = run.vmi, run.world.clock()
    if is_migrating(vmi, now):
        return
    needed = _need(vmi, pod, now)
    existing = conditions.find(vmi, MIGRATION_REQUIRED)
    if needed is None:
        conditions.remove(vmi, MIGRATION_REQUIRED)
        return
    if existing is not None and existing.get("status") == "True":
        return
    reason = "AutoMigrationDueToLiveUpdate" if needed else "AutoMigrationPending"
    made = conditions.make(MIGRATION_REQUIRED, str(needed), reason, transition=run.now())
    conditions.update(vmi, made)
    if not needed:
        run.world.queue.add_after(run.key, RECHECK)


def _need(vmi: Object, pod: Object, now: datetime) -> bool | None:
    """True: now; False: if nobody else does it in time; None: no."""
    need = _first_need(vmi, pod)
    if need is False:
        existing = conditions.find(vmi, MIGRATION_REQUIRED) or {}
        since = moment(existing.get("lastTransitionTime"))
        if existing.get("status") == "False" and since and (now - since).total_seconds() > GRACE:
            return True
    return need


def _first_need(vmi: Object, pod: Object) -> bool | None:
    networks = {one.get("name"): one for one in secondary_networks(spec_of(vmi).get("networks") or ())}
    known = {one.get("name"): one for one in at(vmi, "status", "interfaces") or ()}
    attached = {one.get("interface"): one for one in network_statuses(pod)}
    for interface in at(vmi, "spec", "domain", "devices", "interfaces") or ():
        network, told = networks.get(interface.get("name")), known.get(interface.get("name"))
        if network is None:
            continue
        absent = interface.get("state") == "absent"
        if told is None:
            if not absent:
                return interface.get("sriov") is not None
            continue
        sources = str(told.get("infoSource") or "").split(", ")
        if absent and MULTUS in sources and DOMAIN not in sources:
            return False
        status = attached.get(told.get("podInterfaceName")) if told.get("podInterfaceName") else None
        if status is not None and not _same_definition(network, status, namespace_of(vmi)):
            return True
    return None


def _same_definition(network: Item, status: Item, namespace: str) -> bool:
    name = str(network["multus"].get("networkName", ""))
    return status.get("name") in (name, name if "/" in name else f"{namespace}/{name}")
