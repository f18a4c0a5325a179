"""Names of a pod's network interfaces (``pkg/network/namescheme``, ``pkg/network/link/names.go``).

A network's interface has a name made of a hash of the network's; older pods number theirs.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

PRIMARY = "eth0"

_HASHED = "pod"
# The kernel's 15 characters less the longest suffix, "-nic".
_LONGEST = 11
_FIRST_TAP = "tap0"


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


def bridge(interface: str) -> str:
    """Return the name of the bridge that the guest's tap is in."""
    return "k6t-" + interface.removeprefix(_HASHED)


def nic(interface: str) -> str:
    """Return the name that the pod's own interface has been given under a bridge binding."""
    return interface.removeprefix(_HASHED) + "-nic"


def tap(interface: str, network: Mapping[str, Any]) -> str:
    """Return the name of the guest's tap."""
    return f"tap{interface[3:]}" if is_secondary(network) else _FIRST_TAP
