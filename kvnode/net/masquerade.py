"""Address translation between a pod's address and its guest's.

``pkg/network/setup/netpod/masquerade/masquerade.go``. What comes to the pod goes to the guest: to the ports that
the VMI lists, or to all. Connections from within the pod to its loopback reach the guest too.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from ipaddress import IPv4Interface, IPv6Interface
from typing import Any

from kvnode.net import istio
from kvnode.net.desired import Request
from kvnode.net.errors import NetError
from kvnode.net.nft import Match, Rule, Ruleset, Verdict
from kvnode.net.state import BRIDGE, PodLink, Status, Wanted, WantedLink

PRE_INBOUND, POST_INBOUND = "KUBEVIRT_PREINBOUND", "KUBEVIRT_POSTINBOUND"
# Of libvirt's own migrations: direct, and of blocks.
_MIGRATION_PORTS = (49152, 49153)
_LOOPBACK = {"ip": "127.0.0.1", "ip6": "::1"}
_PREROUTING, _OUTPUT, _POSTROUTING = "prerouting", "output", "postrouting"


def compose(request: Request, status: Status, wanted: Wanted) -> list[Ruleset]:
    """Return the rules, a set for each family that the pod has an address of.

    Only the first interface that masquerades has any. Raises NetError when its pod interface is missing.
    """
    interface = next((one for one in request.interfaces if one.get("masquerade") is not None), None)
    if interface is None:
        return []
    name = interface["name"]
    bridge = next((link for link in wanted.links if link.kind == BRIDGE and link.network == name), None)
    if bridge is None:
        return []
    pod = status.link(request.pod_links(status).get(name, ""))
    if pod is None:
        raise NetError(f"network {name}: the pod has no interface for it")
    sets = []
    for family, addresses in (("ip", bridge.ipv4), ("ip6", bridge.ipv6)):
        if addresses:
            side = _Side(family, pod, bridge, addresses[0], request.istio)
            sets.append(Ruleset(family, (PRE_INBOUND, POST_INBOUND), tuple(_rules(side, request, interface))))
    return sets


@dataclass(frozen=True)
class _Side:
    """One family's addresses."""

    family: str
    pod: PodLink
    bridge: WantedLink
    own: IPv4Interface | IPv6Interface
    istio: bool

    @property
    def gateway(self) -> str:
        return str(self.own.ip)

    @property
    def guest(self) -> str:
        return str(self.own.ip + 1)

    @property
    def snat_from(self) -> tuple[str, ...]:
        """Where connections come from that must come back through the gateway."""
        own = (_LOOPBACK[self.family],)
        return (*own, istio.LOOPBACK) if self.istio and self.family == "ip" else own

    @property
    def dnat_from(self) -> tuple[str, ...]:
        """What the pod calls itself."""
        own = (_LOOPBACK[self.family],)
        return (*own, str(self.pod.ipv4[0].ip)) if self.istio and self.family == "ip" else own


def _rules(side: _Side, request: Request, interface: Mapping[str, Any]) -> Iterator[Rule]:
    yield Rule(_POSTROUTING, (Match(side.family, "saddr", side.guest),), Verdict("masquerade"))
    yield Rule(_PREROUTING, (Match("meta", "iifname", side.pod.name),), Verdict("jump", PRE_INBOUND))
    yield Rule(_POSTROUTING, (Match("meta", "oifname", side.bridge.name),), Verdict("jump", POST_INBOUND))
    if request.legacy_migration_ports:
        yield from _skipped(side, _MIGRATION_PORTS)
    ports = interface.get("ports") or ()
    ranges = (interface.get("portRanges") or ()) if request.port_ranges else ()
    for port in ports:
        number = int(port.get("port") or 0)
        yield from _forwarded(side, str(port.get("protocol") or "tcp").lower(), (number, number))
    for one in ranges:
        bounds = (int(one.get("start") or 0), int(one.get("end") or 0))
        yield from _forwarded(side, str(one.get("protocol") or "").lower(), bounds, is_range=True)
    if not ports and not ranges:
        yield from _all(side)


def _skipped(side: _Side, ports: tuple[int, ...]) -> Iterator[Rule]:
    """The pod's own connections to ports of its own programs stay in the pod."""
    matches = (Match("tcp", "dport", ports), Match(side.family, "saddr", _LOOPBACK[side.family]))
    yield Rule(_OUTPUT, matches, Verdict("return"))
    yield Rule(POST_INBOUND, matches, Verdict("return"))


def _forwarded(
    side: _Side, protocol: str, bounds: tuple[int, int], *, is_range: bool = False
) -> Iterator[Rule]:
    start, end = bounds
    value: int | range = range(start, end + 1) if is_range else start
    if side.istio:
        past = tuple(port for port in istio.NON_PROXIED_PORTS if start <= port <= end)
        if past:
            yield Rule(PRE_INBOUND, (Match("tcp", "dport", past),), Verdict("dnat", side.guest))
    else:
        inbound = value if is_range else (start,)
        yield Rule(PRE_INBOUND, (Match(protocol, "dport", inbound),), Verdict("dnat", side.guest))
    port = Match(protocol, "dport", value)
    yield Rule(
        POST_INBOUND, (port, Match(side.family, "saddr", side.snat_from)), Verdict("snat", side.gateway)
    )
    yield Rule(_OUTPUT, (Match(side.family, "daddr", side.dnat_from), port), Verdict("dnat", side.guest))


def _all(side: _Side) -> Iterator[Rule]:
    if side.istio:
        yield from _skipped(side, istio.RESERVED_PORTS)
        matches: tuple[Match, ...] = (Match("tcp", "dport", istio.NON_PROXIED_PORTS),)
        yield Rule(PRE_INBOUND, matches, Verdict("dnat", side.guest))
    else:
        yield Rule(PRE_INBOUND, (), Verdict("dnat", side.guest))
    yield Rule(POST_INBOUND, (Match(side.family, "saddr", side.snat_from),), Verdict("snat", side.gateway))
    yield Rule(_OUTPUT, (Match(side.family, "daddr", side.dnat_from),), Verdict("dnat", side.guest))
