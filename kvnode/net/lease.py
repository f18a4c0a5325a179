"""What a guest on a bridge takes over from its pod, as a file (``pkg/network/cache/dhcpconfig.go:90``).

Of the file's many fields few are used; the others are there with the zeros of the types that it mirrors.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from ipaddress import IPv4Address, IPv4Interface, IPv4Network
from typing import Any

_ADDRESS_ZEROS = {
    "Label": "",
    "Flags": 0,
    "Scope": 0,
    "Peer": None,
    "Broadcast": "",
    "PreferedLft": 0,
    "ValidLft": 0,
    "LinkIndex": 0,
}
# In the file's order, by the zero that they have.
_ROUTE_ZEROS = {
    "MultiPath": None,
    **dict.fromkeys(("Protocol", "Priority", "Family", "Table", "Type", "Tos", "Flags"), 0),
    **dict.fromkeys(("MPLSDst", "NewDst", "Encap", "Via")),
    "Realm": 0,
    "MTU": 0,
    "MTULock": False,
    **dict.fromkeys(("Window", "Rtt", "RttVar", "Ssthresh", "Cwnd", "AdvMSS", "Reordering"), 0),
    **dict.fromkeys(("Hoplimit", "InitCwnd", "Features", "RtoMin"), 0),
    "RtoMinLock": False,
    "InitRwnd": 0,
    "QuickACK": 0,
    "Congctl": "",
    "FastOpenNoCookie": 0,
}


@dataclass(frozen=True)
class BridgeLease:
    """What the launcher's DHCP server hands on; nothing, if the pod's interface has no address."""

    ip: IPv4Interface | None = None
    mac: bytes = b""
    gateway: IPv4Address | None = None
    routes: Sequence[tuple[IPv4Network | None, IPv4Address | None]] = ()
    """Destination, None for the default, and gateway."""

    def to_bytes(self) -> bytes:
        """Return the file's text."""
        address = {} if self.ip is None else _prefixed(str(self.ip.ip), self.ip.network)
        return to_json(
            {
                "Name": "",
                "IP": {**address, **_ADDRESS_ZEROS},
                "IPv6": _ADDRESS_ZEROS,
                "MAC": base64.b64encode(self.mac).decode() if self.mac else None,
                "AdvertisingIPAddr": "",
                "AdvertisingIPv6Addr": "",
                "Routes": [_route(*route) for route in self.routes] or None,
                "Mtu": 0,
                "IPAMDisabled": self.ip is None,
                "Gateway": "" if self.gateway is None else str(self.gateway),
                "Subdomain": "",
            }
        )


def to_json(data: Mapping[str, Any]) -> bytes:
    """Return JSON as the files of an agent are written, by Go's encoder."""
    text = json.dumps(data, indent=2, ensure_ascii=False)
    for character in "&<>\u2028\u2029":
        text = text.replace(character, f"\\u{ord(character):04x}")
    return text.encode(errors="replace")


def _route(destination: IPv4Network | None, router: IPv4Address | None) -> dict[str, Any]:
    return {
        "LinkIndex": 0,
        "ILinkIndex": 0,
        "Scope": 0,
        "Dst": None if destination is None else _prefixed(str(destination.network_address), destination),
        "Src": "",
        "Gw": "" if router is None else str(router),
        **_ROUTE_ZEROS,
    }


def _prefixed(address: str, network: IPv4Network) -> dict[str, str]:
    return {"IP": address, "Mask": base64.b64encode(network.netmask.packed).decode()}
