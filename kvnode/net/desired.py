"""What a pod's network is to look like for a VMI's interfaces (``pkg/network/setup/netpod/netpod.go:265-560``)."""

from __future__ import annotations

import ipaddress
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from ipaddress import IPv4Interface, IPv6Interface
from typing import Any

from kvnode.net import names
from kvnode.net.errors import NetError
from kvnode.net.state import (
    ABSENT,
    BRIDGE,
    DUMMY,
    TAP,
    UP,
    PodLink,
    Status,
    Tap,
    Wanted,
    WantedLink,
    WantedStack,
    first_global,
)

# A bridge that masquerades has the same address in every pod: it is the guest's gateway, on whatever node.
_MASQUERADE_MAC = "02:00:00:00:00:00"
# ``staging/src/kubevirt.io/api/core/v1/defaults.go``
_DEFAULT_CIDR = "10.0.2.0/24"
_DEFAULT_CIDR6 = "fd10:0:2::/120"
_BRIDGE_ADDRESS = "169.254.75.1"
_MANAGED_TAP = "managedTap"
# User and group of a launcher, who sends pings for its guest.
_LAUNCHER = 107
_MULTIQUEUE_MODELS = ("", "virtio")
_DOMAIN = "domain"
# Bindings that the API's types still have.
_GONE = ("slirp", "macvtap", "passt")
_LONGEST_NAME = 15
"""Bytes of an interface's name (``IFNAMSIZ`` less the final zero)."""


@dataclass(frozen=True)
class Request:
    """One set-up of a pod's network."""

    uid: str
    """The VMI's."""
    networks: Sequence[Mapping[str, Any]]
    interfaces: Sequence[Mapping[str, Any]]
    """Those of ``networks``."""
    launcher_pid: int
    owner: int = _LAUNCHER
    """User and group id of the launcher."""
    queues: int = 0
    """Queues of a tap whose guest can use them."""
    statuses: Sequence[Mapping[str, Any]] = ()
    """The VMI's ``status.interfaces``."""
    plugins: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    """``network.binding`` of the cluster's configuration."""
    pod_ip: str = ""
    """The agent's own address, of the family that the cluster prefers."""
    istio: bool = False
    legacy_migration_ports: bool = False
    """Whether migrations go through ports of the pod."""
    port_ranges: bool = False
    """Whether ``portRanges`` may be used."""

    def network(self, name: str) -> Mapping[str, Any]:
        """The network of that name; raises NetError."""
        found = next((network for network in self.networks if network.get("name") == name), None)
        if found is None:
            raise NetError(f"spec.domain.devices.interfaces: {name!r} has no network of its name")
        return found

    def interface(self, name: str) -> Mapping[str, Any] | None:
        """The interface of that network."""
        return next((one for one in self.interfaces if one.get("name") == name), None)

    def pod_links(self, status: Status) -> dict[str, str]:
        """The pod's interface of each network."""
        ordinal = names.has_ordinals(link.name for link in status.links)
        return names.scheme(self.networks, self.statuses, ordinal=ordinal)

    def attachment(self, interface: Mapping[str, Any]) -> str:
        """How the plugin that binds an interface attaches it to the domain; "" when there is none."""
        plugin = self.plugins.get((interface.get("binding") or {}).get("name", "")) or {}
        return str(plugin.get("domainAttachmentType") or "")


def is_absent(interface: Mapping[str, Any]) -> bool:
    """Tell whether an interface is to be unplugged."""
    return interface.get("state") == "absent"


def missing(link: str) -> NetError:
    """Return the error of an interface that a container network plugin has not made."""
    return NetError(f"the pod has no interface {link or 'for this network'}")


def unbound(interface: Mapping[str, Any]) -> NetError:
    """Return the error of an interface without a binding that there is."""
    name = interface.get("name")
    gone = next((one for one in _GONE if interface.get(one) is not None), None)
    if gone is not None:
        return NetError(f"interface {name}: the binding {gone} no longer exists; bridge and masquerade do")
    return NetError(f"interface {name}: has no binding that is known here; bridge and masquerade are")


def compose(request: Request, status: Status) -> Wanted:
    """Return what is to be there; raises NetError when an interface cannot be bound."""
    pod_links = request.pod_links(status)
    links: list[WantedLink] = []
    stack = WantedStack()
    for position, interface in enumerate(request.interfaces):
        name = pod_links.get(str(interface.get("name")), "")
        found: list[WantedLink] = []
        if _is_bridged(request, interface):
            if status.link(name) is None and not is_absent(interface):
                raise missing(name)
            found = _bridge(request, status, name, position)
            if any(first_global(link.ipv4) for link in found):
                stack = replace(stack, arp_ignore=1)
            if is_absent(interface) and interface.get("bridge") is not None:
                found = [replace(link, state=ABSENT) for link in found if link.kind]
        elif interface.get("masquerade") is not None:
            pod = status.link(name)
            if pod is None:
                raise missing(name)
            found = _masquerade(request, pod, position)
            stack = replace(
                stack,
                forwarding4=stack.forwarding4 or any(first_global(link.ipv4) for link in found),
                forwarding6=stack.forwarding6 or any(first_global(link.ipv6) for link in found),
            )
        elif interface.get("passtBinding") is not None:
            stack = replace(stack, ping_group_range=(_LAUNCHER, _LAUNCHER), unprivileged_port_start=0)
        elif interface.get("sriov") is None and interface.get("binding") is None:
            raise unbound(interface)
        links += found
    for link in links:
        if len(link.name.encode()) > _LONGEST_NAME:
            raise NetError(f"interface {link.name}: its name would be longer than {_LONGEST_NAME} bytes")
    return Wanted(tuple(links), stack)


def _is_bridged(request: Request, interface: Mapping[str, Any]) -> bool:
    if interface.get("bridge") is not None:
        return True
    others = ("masquerade", "passtBinding", "sriov")
    return (
        all(interface.get(other) is None for other in others)
        and request.attachment(interface) == _MANAGED_TAP
    )


def _bridge(request: Request, status: Status, name: str, position: int) -> list[WantedLink]:
    """The guest's tap and the pod's interface are ports of a bridge; a dummy keeps the pod's addresses."""
    network = request.network(str(request.interfaces[position].get("name")))
    key, nic, bridge = network["name"], names.nic(name), names.bridge(name)
    renamed = status.link(nic)
    # Once it is on the bridge, the dummy in its place has what it had.
    pod = status.link(name) or renamed or PodLink(0, "", "", "", "", 0)
    own = (IPv4Interface(f"{_BRIDGE_ADDRESS}{position}/32"),) if first_global(pod.ipv4) else None
    return [
        WantedLink(bridge, key, BRIDGE, UP, ipv4=own),
        WantedLink(
            nic,
            key,
            state=UP,
            index=(renamed or pod).index,
            copy_mac_from=bridge,
            controller=bridge,
            ipv4=(),
            ipv6=(),
            learning_off=True,
        ),
        _tap(request, network, name, position, pod.mtu),
        WantedLink(name, key, DUMMY, mac=pod.mac, mtu=pod.mtu, ipv4=pod.ipv4, ipv6=pod.ipv6),
    ]


def _masquerade(request: Request, pod: PodLink, position: int) -> list[WantedLink]:
    """The guest's tap is alone in a bridge, which is the guest's gateway."""
    network = request.network(str(request.interfaces[position].get("name")))
    own = network.get("pod") or {}
    ipv4: tuple[IPv4Interface, ...] = ()
    ipv6: tuple[IPv6Interface, ...] = ()
    if first_global(pod.ipv4):
        ipv4 = (IPv4Interface(gateway(own.get("vmNetworkCIDR") or _DEFAULT_CIDR, 4)),)
    if first_global(pod.ipv6):
        ipv6 = (IPv6Interface(gateway(own.get("vmIPv6NetworkCIDR") or _DEFAULT_CIDR6, 6)),)
    bridge = WantedLink(
        names.bridge(pod.name),
        network["name"],
        BRIDGE,
        UP,
        mac=_MASQUERADE_MAC,
        mtu=pod.mtu,
        ipv4=ipv4,
        ipv6=ipv6,
        route_localnet=bool(ipv4),
    )
    return [bridge, _tap(request, network, pod.name, position, pod.mtu)]


def _tap(request: Request, network: Mapping[str, Any], pod: str, position: int, mtu: int) -> WantedLink:
    return WantedLink(
        names.tap(pod, network),
        network["name"],
        TAP,
        UP,
        mtu=mtu,
        controller=names.bridge(pod),
        tap=Tap(_queues(request, request.interfaces[position]), request.owner),
        pid=request.launcher_pid,
    )


def _queues(request: Request, interface: Mapping[str, Any]) -> int:
    """An interface that the domain already has keeps the queues it was started with."""
    if (interface.get("model") or "") not in _MULTIQUEUE_MODELS:
        return 0
    for status in request.statuses:
        sources = [source.strip() for source in str(status.get("infoSource") or "").split(",")]
        if status.get("name") == interface.get("name") and _DOMAIN in sources:
            return int(status.get("queueCount") or 0)
    return request.queues


def gateway(cidr: str, version: int) -> str:
    """Return the first host of a network, with its prefix length; raises NetError.

    The second is the guest, so a network of less than four addresses has no room.
    """
    try:
        network = ipaddress.ip_network(cidr, strict=False)
    except ValueError:
        raise NetError(f"pod network: {cidr!r} is no network in CIDR notation") from None
    if "/" not in cidr or network.version != version:
        raise NetError(f"pod network: {cidr!r} is no IPv{version} network in CIDR notation")
    if network.num_addresses < 4:
        raise NetError(f"pod network: {cidr!r} has no room for a gateway and a guest; /30 (IPv6: /126) has")
    return f"{network[1]}/{network.prefixlen}"
