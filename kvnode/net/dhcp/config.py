"""What a DHCP server of an interface tells the guest, by the interface's binding."""

from __future__ import annotations

import base64
import ipaddress
import json
from collections.abc import Mapping
from dataclasses import dataclass
from ipaddress import IPv4Address, IPv4Interface, IPv4Network, IPv6Address, IPv6Interface, IPv6Network
from pathlib import Path
from typing import Any

from kvnode.net.dhcp.errors import DhcpError
from kvnode.net.dhcp.options import Route

# ``staging/src/kubevirt.io/api/core/v1/defaults.go``
_DEFAULT_CIDR = "10.0.2.0/24"
_DEFAULT_CIDR6 = "fd10:0:2::/120"
# Server address of a bridge binding: it owns no other, and the guest must not be able to reach it.
_BRIDGE_ADDRESS = "169.254.75.1"


@dataclass(frozen=True)
class DhcpConfig:
    """One interface's configuration (``pkg/network/cache/dhcpconfig.go:90``)."""

    name: str = ""
    """The pod's interface."""

    ip: IPv4Interface | None = None
    ipv6: IPv6Interface | None = None
    """The guest's addresses."""

    mac: bytes = b""
    """The guest's MAC address; with one, no other client is answered."""

    server_ip: IPv4Address | None = None
    server_ipv6: IPv6Address | None = None
    gateway: IPv4Address | None = None
    routes: tuple[Route, ...] | None = None
    mtu: int = 0
    subdomain: str = ""
    ipam_disabled: bool = False
    """The pod's interface has no address that the guest could take over; there is no server then."""


def bridge_cache(private: Path, pod_interface: str) -> Path:
    """Return the file in which the agent leaves the addresses that it took from the pod's interface."""
    return private / f"vif-cache-{pod_interface}.json"


def bridge(cache: bytes, *, name: str, position: int, mtu: int, subdomain: str) -> DhcpConfig:
    """Return the configuration of a bridge binding out of the agent's cache (``pkg/network/dhcp/bridge.go:44``).

    ``position`` is the interface's place among the VMI's, ``mtu`` that of the pod's NIC (``<name>-nic``).
    Raises DhcpError when the cache is not what an agent writes.
    """
    try:
        data = json.loads(cache)
        if data.get("IPAMDisabled"):
            return DhcpConfig(ipam_disabled=True)
        return DhcpConfig(
            name=name,
            ip=_interface(data["IP"]),
            mac=base64.b64decode(data.get("MAC") or "", validate=True),
            server_ip=IPv4Address(f"{_BRIDGE_ADDRESS}{position}"),
            gateway=_address(data.get("Gateway")),
            routes=None if data.get("Routes") is None else tuple(map(_route, data["Routes"])),
            mtu=mtu,
            subdomain=subdomain,
        )
    except (ValueError, LookupError, TypeError, AttributeError):
        raise DhcpError(
            f"vif-cache-{name}.json: not an interface's addresses as an agent writes them"
        ) from None


def _interface(value: Mapping[str, Any]) -> IPv4Interface | None:
    if not value.get("IP"):
        return None
    return IPv4Interface((value["IP"], _prefix(value["Mask"])))


def _prefix(mask: str) -> int:
    return IPv4Interface((0, str(IPv4Address(base64.b64decode(mask)[-4:])))).network.prefixlen


def _address(text: str | None) -> IPv4Address | None:
    return IPv4Address(text) if text else None


def _route(value: Mapping[str, Any]) -> Route:
    destination = value.get("Dst")
    network = None
    if destination is not None:
        network = IPv4Network((destination["IP"], _prefix(destination["Mask"])), strict=False)
    return Route(network, _address(value.get("Gw")))


def masquerade(
    network: Mapping[str, Any], *, name: str, mtu: int, subdomain: str, ipv4: bool, ipv6: bool
) -> DhcpConfig:
    """Return the configuration of a masquerade binding (``pkg/network/dhcp/masquerade.go:39``).

    ``network`` is the VMI's; ``ipv4`` and ``ipv6`` say whether the pod's interface has a global address of
    the family. Raises DhcpError when a CIDR is none or has less than four addresses.
    """
    pod = network.get("pod") or {}
    ip = server = ip6 = server6 = None
    if ipv4:
        cidr = pod.get("vmNetworkCIDR") or _DEFAULT_CIDR
        net = _network(cidr, "pod.vmNetworkCIDR")
        if not isinstance(net, IPv4Network):
            raise DhcpError(f"network {network.get('name')}: pod.vmNetworkCIDR: {cidr!r} is not IPv4")
        server, ip = net[1], IPv4Interface((net[2], net.prefixlen))
    if ipv6:
        cidr = pod.get("vmIPv6NetworkCIDR") or _DEFAULT_CIDR6
        net6 = _network(cidr, "pod.vmIPv6NetworkCIDR")
        if not isinstance(net6, IPv6Network):
            raise DhcpError(f"network {network.get('name')}: pod.vmIPv6NetworkCIDR: {cidr!r} is not IPv6")
        server6, ip6 = net6[1], IPv6Interface((net6[2], net6.prefixlen))
    return DhcpConfig(
        name=name,
        ip=ip,
        ipv6=ip6,
        server_ip=server,
        server_ipv6=server6,
        gateway=server,
        mtu=mtu,
        subdomain=subdomain,
    )


def _network(cidr: str, field: str) -> IPv4Network | IPv6Network:
    try:
        found = ipaddress.ip_network(cidr, strict=False)
    except ValueError:
        raise DhcpError(f"{field}: {cidr!r} is no network in CIDR notation") from None
    if "/" not in cidr or found.num_addresses < 4:
        raise DhcpError(f"{field}: {cidr!r} is no network of at least four addresses")
    return found
