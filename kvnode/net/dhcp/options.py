"""The options of a DHCPv4 answer."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from ipaddress import IPv4Address, IPv4Network
from typing import Any

from kvnode.net.dhcp.errors import DhcpError
from kvnode.net.dhcp.resolvconf import domain_name, parse_address

SUBNET_MASK, ROUTER, NAME_SERVERS, HOST_NAME, DOMAIN_NAME = 1, 3, 6, 12, 15
MTU, NTP_SERVERS, LEASE_TIME, MESSAGE_TYPE, SERVER_ID = 26, 42, 51, 53, 54
TFTP_SERVER, BOOT_FILE, SEARCH_DOMAINS, CLASSLESS_ROUTES = 66, 67, 119, 121
# Options that a VMI may set freely (RFC 3942).
_PRIVATE = range(224, 255)

_LONGEST_DOMAIN = 253
_LONGEST_SEARCH = 255
_DOMAIN = re.compile(r"(?:[_a-z0-9](?:[_a-z0-9-]{0,61}[a-z0-9])?\.)*(?:[a-z](?:[a-z0-9-]{0,61}[a-z0-9])?)?")


@dataclass(frozen=True)
class Route:
    """A route that the guest is told of."""

    destination: IPv4Network | None
    """None: the default route."""

    gateway: IPv4Address | None
    """None: on the link."""


def build(
    *,
    mask: IPv4Address | None,
    router: IPv4Address | None,
    nameservers: Iterable[IPv4Address],
    routes: Sequence[Route],
    search: Sequence[str],
    mtu: int,
    hostname: str,
    custom: Mapping[str, Any] | None,
) -> dict[int, bytes]:
    """Return the options by code (``pkg/network/dhcp/server/server.go:102``).

    ``custom`` is the interface's ``dhcpOptions``. Raises DhcpError for a search domain that is none, search
    domains of more than 255 bytes, and an NTP server that is no IPv4 address.
    """
    options = {
        NAME_SERVERS: b"".join(server.packed for server in nameservers),
        MTU: (mtu & 0xFFFF).to_bytes(2, "big"),
        HOST_NAME: hostname.encode(),
    }
    optional = {
        SUBNET_MASK: mask.packed if mask is not None else b"",
        ROUTER: router.packed if router is not None else b"",
        CLASSLESS_ROUTES: classless_routes(routes),
        SEARCH_DOMAINS: search_list(search),
        # Windows resolves names with this one alone.
        DOMAIN_NAME: domain_name(search).encode(),
    }
    options |= {code: value for code, value in optional.items() if value}
    return options | _custom(custom or {})


def classless_routes(routes: Sequence[Route]) -> bytes:
    """Encode routes (RFC 3442), the default route last: a guest may need another to reach its gateway."""
    ordered = sorted(routes, key=lambda route: route.destination is None)
    encoded = b""
    for route in ordered:
        network = route.destination or IPv4Network("0.0.0.0/0")
        significant = (network.prefixlen + 7) // 8
        gateway = route.gateway.packed if route.gateway is not None else bytes(4)
        encoded += bytes([network.prefixlen]) + network.network_address.packed[:significant] + gateway
    return encoded


def search_list(search: Sequence[str]) -> bytes:
    """Encode search domains (RFC 3397) without compression; raises DhcpError."""
    encoded = b""
    for domain in search:
        if len(domain) > _LONGEST_DOMAIN or not _DOMAIN.fullmatch(domain):
            raise DhcpError(f"resolv.conf: search domain {domain!r} is no domain name")
        for label in domain.split("."):
            encoded += bytes([len(label)]) + label.encode()
        encoded += b"\0"
    if len(encoded) > _LONGEST_SEARCH:
        raise DhcpError(
            f"resolv.conf: the search domains take {len(encoded)} bytes, more than the 255 of a DHCP option"
        )
    return encoded


def _custom(custom: Mapping[str, Any]) -> dict[int, bytes]:
    options: dict[int, bytes] = {}
    if custom.get("tftpServerName"):
        options[TFTP_SERVER] = _text(custom["tftpServerName"])
    if custom.get("bootFileName"):
        options[BOOT_FILE] = _text(custom["bootFileName"])
    servers = b""
    for index, text in enumerate(custom.get("ntpServers") or []):
        address = parse_address(str(text))
        if not isinstance(address, IPv4Address):
            raise DhcpError(f"dhcpOptions.ntpServers[{index}]: {text!r} is no IPv4 address")
        servers += address.packed
    if servers:
        options[NTP_SERVERS] = servers
    for private in custom.get("privateOptions") or []:
        if private.get("option") in _PRIVATE:
            options[int(private["option"])] = _text(private.get("value", ""))
    return options


def _text(value: object) -> bytes:
    # JSON can hold half a character, which UTF-8 cannot.
    return str(value).encode("utf-8", "replace")
