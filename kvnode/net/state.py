"""The network of a pod: what is there, and what is to be there."""

from __future__ import annotations

from dataclasses import dataclass
from ipaddress import (
    IPv4Address,
    IPv4Interface,
    IPv4Network,
    IPv6Address,
    IPv6Interface,
    IPv6Network,
)

from kvnode.net.links import is_global_unicast

BRIDGE, TAP, DUMMY, VETH = "bridge", "tap", "dummy", "veth"
UP, ABSENT, UNSAID = "up", "absent", ""

MAIN_TABLE = 254

Addresses = tuple[IPv4Interface, ...] | tuple[IPv6Interface, ...]


@dataclass(frozen=True)
class PodLink:
    """A network interface as it is."""

    index: int
    name: str
    kind: str
    """The kernel's word: ``veth``, ``bridge`` …; "" for one without, as ``lo``; ``tap`` for a tap."""
    state: str
    """Operational state: ``up``, ``down``, ``lowerlayerdown``, ``unknown`` …"""
    mac: str
    mtu: int
    """Bytes."""
    is_up: bool = False
    """Whether it is switched on, carrier or not."""
    controller: str = ""
    """Name of the bridge that it is a port of."""
    ipv4: tuple[IPv4Interface, ...] = ()
    ipv6: tuple[IPv6Interface, ...] = ()
    route_localnet: bool = False
    learning: bool = False
    """Whether the bridge learns addresses at this port."""


@dataclass(frozen=True)
class PodRoute:
    """A route through an interface."""

    destination: IPv4Network | IPv6Network
    link: str
    gateway: IPv4Address | IPv6Address | None = None
    table: int = MAIN_TABLE
    priority: int = 0
    source: IPv4Address | IPv6Address | None = None
    protocol: int = 0
    """Who made it: 2 the kernel, 3 and above someone else (``rtnetlink(7)``)."""


@dataclass(frozen=True)
class Stack:
    """Settings of the whole namespace."""

    arp_ignore: int = 0
    forwarding4: bool = False
    forwarding6: bool = False
    ping_group_range: tuple[int, int] = (1, 0)
    unprivileged_port_start: int = 1024


@dataclass(frozen=True)
class Status:
    """What is there. Routes of the main table, IPv4's first."""

    links: tuple[PodLink, ...]
    routes: tuple[PodRoute, ...]
    stack: Stack

    def link(self, name: str) -> PodLink | None:
        """The interface of that name."""
        return next((link for link in self.links if link.name == name), None)


@dataclass(frozen=True)
class Tap:
    """How a tap is made."""

    queues: int
    owner: int
    """User and group id of who may open it."""


@dataclass(frozen=True)
class WantedLink:
    """An interface as it is to be.

    Without a ``kind`` it is someone else's: changed, never made or deleted. Addresses that are None are not
    said; either way only those that are listed stay.
    """

    name: str
    network: str
    """The VMI's network that it is for."""
    kind: str = ""
    state: str = UNSAID
    index: int = 0
    """The interface that gets this name; 0: the one that has it."""
    mac: str = ""
    copy_mac_from: str = ""
    mtu: int = 0
    controller: str = ""
    tap: Tap | None = None
    ipv4: tuple[IPv4Interface, ...] | None = None
    ipv6: tuple[IPv6Interface, ...] | None = None
    route_localnet: bool = False
    learning_off: bool = False
    pid: int = 0
    """The launcher, whose SELinux label a tap gets."""


@dataclass(frozen=True)
class WantedStack:
    """Settings that are to change; None and False leave them."""

    forwarding4: bool = False
    forwarding6: bool = False
    arp_ignore: int | None = None
    ping_group_range: tuple[int, int] | None = None
    unprivileged_port_start: int | None = None


@dataclass(frozen=True)
class Wanted:
    """What is to be there, in the order in which it is made."""

    links: tuple[WantedLink, ...]
    stack: WantedStack


def first_global(addresses: Addresses | None) -> IPv4Interface | IPv6Interface | None:
    """Return the first address by which a machine is reached from elsewhere."""
    return next((one for one in addresses or () if is_global_unicast(one.ip)), None)
