"""Which of a VMI's networks are to be set up now (``pkg/network/setup/filters.go``)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from kvnode.agent.interfaces import DOMAIN, MULTUS, sources_of
from kvnode.agent.vmi import Vmi, by_name, interfaces, spec, status

Network = Mapping[str, Any]


def networks_to_start(vmi: Vmi) -> list[Network]:
    """Networks of the interfaces that the VM starts with, in the interfaces' order."""
    return _networks_of(vmi, [one for one in interfaces(vmi) if not _is_absent(one)])


def networks_to_change(vmi: Vmi) -> list[Network]:
    """Networks of a running VM that have come into the pod and not into the domain, then those that have left both
    the domain and the spec.
    """
    sources = {one.get("name"): sources_of(one) for one in status(vmi).get("interfaces") or ()}
    outside = {name: found for name, found in sources.items() if DOMAIN not in found}
    plug = [
        one for one in interfaces(vmi) if not _is_absent(one) and MULTUS in outside.get(one.get("name"), ())
    ]
    unplug = [one for one in interfaces(vmi) if _is_absent(one) and one.get("name") in outside]
    return _networks_of(vmi, plug) + _networks_of(vmi, unplug)


def has_unplugged_sriov(vmi: Vmi) -> bool:
    """Whether a device of an SR-IOV interface is in the pod, and not in the domain yet (``vm.go:2119-2150``)."""
    asked = {one.get("name") for one in interfaces(vmi) if one.get("sriov") is not None}
    found = [sources_of(one) for one in status(vmi).get("interfaces") or () if one.get("name") in asked]
    return any(MULTUS in sources and DOMAIN not in sources for sources in found)


def _networks_of(vmi: Vmi, chosen: list[Mapping[str, Any]]) -> list[Network]:
    networks = by_name(spec(vmi).get("networks") or ())
    return [networks[name] for one in chosen if (name := str(one.get("name") or "")) in networks]


def _is_absent(interface: Mapping[str, Any]) -> bool:
    return interface.get("state") == "absent"
