"""Remembering what a pod's interfaces have, before they change.

``pkg/network/setup/netpod/discover.go``, ``discoverbridge.go``.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Mapping
from dataclasses import replace
from ipaddress import IPv4Address, IPv4Interface, IPv4Network
from typing import Any

from kvnode.net import names
from kvnode.net.cache import Cache, PodInterface
from kvnode.net.desired import Request, is_absent, missing, unbound
from kvnode.net.errors import NetError
from kvnode.net.lease import BridgeLease
from kvnode.net.state import PodLink, Status, first_global

_MAC_LENGTHS = (6, 8, 20)


def discover(request: Request, status: Status, cache: Cache) -> None:
    """Write down the addresses of the pod's interfaces; raises NetError when one is missing.

    Interfaces that are to be unplugged are left alone.
    """
    pod_links = request.pod_links(status)
    for interface in request.interfaces:
        if is_absent(interface):
            continue
        name = pod_links.get(str(interface.get("name")), "")
        link = status.link(name)
        if interface.get("bridge") is not None:
            if link is None:
                raise missing(name)
            # The guest cannot have the pod's IPv6 address: nobody tells it of one.
            link = replace(link, ipv6=())
            _store(request, cache, interface, link)
            # Of an interface that is on its bridge already, what was written then holds: its routes are gone.
            if status.link(names.nic(name)) is None:
                cache.write_lease(name, _lease(request, status, interface, link))
        elif interface.get("masquerade") is not None or (
            interface.get("passtBinding") is not None and interface.get("binding") is None
        ):
            if link is None:
                raise missing(name)
            _store(request, cache, interface, link)
        elif interface.get("binding") is not None:
            # Whether there is one is the plugin's affair.
            if link is not None:
                _store(request, cache, interface, link)
        elif interface.get("sriov") is None:
            raise unbound(interface)


def _store(request: Request, cache: Cache, interface: Mapping[str, Any], link: PodLink) -> None:
    found = [first_global(link.ipv4), first_global(link.ipv6)]
    addresses = [str(one.ip) for one in found if one is not None]
    if not addresses:
        return
    if len(addresses) > 1 and not _prefers_ipv4(request.pod_ip):
        addresses.reverse()
    name = str(interface.get("name"))
    known = cache.read(name) or PodInterface()
    cache.write(name, replace(known, interface=interface, addresses=tuple(addresses)))


def _prefers_ipv4(pod_ip: str) -> bool:
    if not pod_ip:
        raise NetError("MY_POD_IP: is not set, so which address comes first is not known")
    try:
        return ipaddress.ip_address(pod_ip).version == 4
    except ValueError:
        return True


def _lease(request: Request, status: Status, interface: Mapping[str, Any], link: PodLink) -> BridgeLease:
    own = first_global(link.ipv4)
    if not isinstance(own, IPv4Interface):
        return BridgeLease()
    routes = [
        (route.destination, route.gateway if isinstance(route.gateway, IPv4Address) else None)
        for route in status.routes
        if route.link == link.name and isinstance(route.destination, IPv4Network)
    ]
    if not routes:
        raise NetError(f"the pod's {link.name}: has no route, so its guest would have no gateway")
    default = IPv4Network("0.0.0.0/0")
    return BridgeLease(
        ip=own,
        mac=_mac(request, interface, link),
        gateway=routes[0][1],
        routes=[
            (None if destination == default else destination, router)
            for destination, router in routes
            if destination != own.network or destination == default
        ],
    )


def _mac(request: Request, interface: Mapping[str, Any], link: PodLink) -> bytes:
    """The guest's MAC address: the spec's, else the status's, else the pod's."""
    status = next((one for one in request.statuses if one.get("name") == interface.get("name")), {})
    text = str(interface.get("macAddress") or status.get("mac") or link.mac)
    try:
        mac = bytes.fromhex(text.replace(":", "").replace("-", "").replace(".", ""))
    except ValueError:
        mac = b""
    if len(mac) not in _MAC_LENGTHS:
        raise NetError(f"interface {interface.get('name')}: {text!r} is no MAC address")
    return mac
