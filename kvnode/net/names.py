"""Names of a pod's network interfaces (``pkg/network/namescheme``, ``pkg/network/link/names.go``).

A network's interface has a name made of a hash of the network's; older pods number theirs.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

PRIMARY = "eth0"

_HASHED = "pod"
# The kernel's 15 characters less the longest suffix, "-nic".
_LONGEST = 11
_FIRST_TAP = "tap0"
_ORDINAL = re.compile(r"net[0-9]+")


def is_secondary(network: Mapping[str, Any]) -> bool:
    """Tell whether a network of the VMI is not the pod's own."""
    multus = network.get("multus")
    return multus is not None and not multus.get("default")


def hashed(network: str) -> str:
    """Return the name of a secondary network's interface."""
    # Loaded here: it brings OpenSSL, which a launcher of a VM with one network need not hold.
    import hashlib  # noqa: PLC0415

    return _HASHED + hashlib.sha256(network.encode()).hexdigest()[:_LONGEST]


def candidates(
    network: Mapping[str, Any],
    networks: Sequence[Mapping[str, Any]],
    statuses: Sequence[Mapping[str, Any]],
) -> tuple[str, str]:
    """Return the names that a network's interface may have, the likelier first.

    ``networks`` are the VMI's, ``statuses`` its ``status.interfaces``.
    """
    name = network["name"]
    if is_secondary(network):
        secondary = [one["name"] for one in networks if is_secondary(one)]
        return hashed(name), f"net{secondary.index(name) + 1}"
    known = next((status for status in statuses if status.get("name") == name), {})
    return known.get("podInterfaceName") or PRIMARY, PRIMARY


def is_primary(network: Mapping[str, Any]) -> bool:
    """Tell whether a network is the pod's own, by whatever it is made."""
    return network.get("pod") is not None or bool((network.get("multus") or {}).get("default"))


def has_ordinals(links: Iterable[str]) -> bool:
    """Tell whether a pod with these interfaces numbers those of its secondary networks."""
    return any(_ORDINAL.fullmatch(name) for name in links)


def scheme(
    networks: Sequence[Mapping[str, Any]], statuses: Sequence[Mapping[str, Any]], *, ordinal: bool
) -> dict[str, str]:
    """Return the pod's interface of each network, by the network's name.

    ``networks`` are those that are looked at, ``statuses`` the VMI's ``status.interfaces``.
    """
    secondary = [network["name"] for network in networks if is_secondary(network)]
    found = {name: f"net{at}" if ordinal else hashed(name) for at, name in enumerate(secondary, start=1)}
    primary = next((network["name"] for network in networks if is_primary(network)), None)
    if primary is not None:
        known = next((status for status in statuses if status.get("name") == primary), {})
        found[primary] = known.get("podInterfaceName") or PRIMARY
    return found


def bridge(interface: str) -> str:
    """Return the name of the bridge that the guest's tap is in."""
    return "k6t-" + interface.removeprefix(_HASHED)


def nic(interface: str) -> str:
    """Return the name that the pod's own interface has been given under a bridge binding."""
    return interface.removeprefix(_HASHED) + "-nic"


def stand_in(interface: str) -> str:
    """Return the name of the far end of a pair of interfaces that stands in for a dummy one."""
    return interface.removeprefix(_HASHED)[:_LONGEST] + "-end"


def tap(interface: str, network: Mapping[str, Any]) -> str:
    """Return the name of the guest's tap."""
    return f"tap{interface[3:]}" if is_secondary(network) else _FIRST_TAP
