"""What a pod's resolv.conf tells a guest: name servers and search domains."""

from __future__ import annotations

import ipaddress
from collections.abc import Sequence
from dataclasses import dataclass
from ipaddress import IPv4Address, IPv6Address

# Handed out when the pod has none (``pkg/network/dns/resolveconf.go:33``).
_DEFAULT_NAMESERVER = IPv4Address("8.8.8.8")
_DEFAULT_SEARCH_DOMAIN = "cluster.local"
_SERVICE_INFIX = ".svc."
# What kubelet and systemd write where there is nothing to search.
_ROOT = "."


@dataclass(frozen=True)
class ResolvConf:
    """The parts of a resolv.conf that DHCP carries, in the file's order."""

    ipv4: tuple[IPv4Address, ...]
    ipv6: tuple[IPv6Address, ...]
    search: tuple[str, ...]
    """Search domains in lower case; ``cluster.local`` when the file has none."""


def parse(text: str) -> ResolvConf:
    """Read a resolv.conf (``pkg/network/dns/resolveconf.go:41``).

    A ``nameserver`` line with more than one value, or with no address, does not count. Without any name
    server at all, of either family, 8.8.8.8 stands in. The root is no domain to search: DHCP could not even carry it.
    """
    ipv4: list[IPv4Address] = []
    ipv6: list[IPv6Address] = []
    search: list[str] = []
    for line in text.split("\n"):
        if line.startswith("nameserver"):
            fields = line.split()
            address = parse_address(fields[1]) if len(fields) == 2 else None
            if isinstance(address, IPv4Address):
                ipv4.append(address)
            elif address is not None:
                ipv6.append(address)
        elif line.startswith("search"):
            domains = line.removeprefix("search").split()
            search += [domain.lower() for domain in domains if domain != _ROOT]
    if not ipv4 and not ipv6:
        ipv4.append(_DEFAULT_NAMESERVER)
    return ResolvConf(tuple(ipv4), tuple(ipv6), tuple(search) or (_DEFAULT_SEARCH_DOMAIN,))


def parse_address(text: str) -> IPv4Address | IPv6Address | None:
    """Read an address; None when it is none. An IPv4 address written as IPv6 is an IPv4 address."""
    if "%" in text:
        return None
    try:
        address = ipaddress.ip_address(text)
    except ValueError:
        return None
    if isinstance(address, IPv6Address) and address.ipv4_mapped is not None:
        return address.ipv4_mapped
    return address


def domain_name(search: Sequence[str]) -> str:
    """Return the longest search domain, which comes closest to a domain name; "" when there is none."""
    return max(search, key=len, default="")


def with_subdomain(search: Sequence[str], subdomain: str) -> tuple[str, ...]:
    """Put the VMI's subdomain before the search domains, unless it is there or there is no service domain.

    Old resolvers take six domains only, so Kubernetes leaves this one out of the pod's file
    (``pkg/network/dns/resolveconf.go:136``).
    """
    service = domain_name([domain for domain in search if _SERVICE_INFIX in domain])
    if not subdomain or not service or service.startswith(f"{subdomain}."):
        return tuple(search)
    return (f"{subdomain}.{service}", *search)
