"""What a network namespace can be asked to do."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from ipaddress import IPv4Interface, IPv6Interface
from typing import Protocol

from kvnode.net.nft import Ruleset
from kvnode.net.state import PodRoute, Status, Tap

Address = IPv4Interface | IPv6Interface


@dataclass(frozen=True)
class Found:
    """An interface as it is now; of one that was just made, no more than its name and kind is known."""

    index: int
    name: str
    kind: str
    mac: str = ""
    mtu: int = 0
    is_running: bool = False
    """Whether it is up, or would be if the interface below it was."""


class Driver(Protocol):
    """The kernel, for one namespace and one thread. Everything raises NetError."""

    def read(self) -> Status:
        """All that is there."""

    def find(self, name: str) -> Found | None:
        """The interface of that name."""

    def at(self, index: int) -> Found | None:
        """The interface of that index."""

    def add_link(self, name: str, kind: str) -> Found:
        """Make an interface; where there is no kind ``dummy``, one that will do."""

    def add_tap(self, name: str, tap: Tap, mtu: int, pid: int) -> Found:
        """Make a tap, with the SELinux label of process ``pid``."""

    def delete_link(self, link: Found) -> None:
        """Delete an interface."""

    def set_up(self, link: Found) -> None:
        """Switch an interface on."""

    def set_down(self, link: Found) -> None:
        """Switch an interface off."""

    def rename(self, link: Found, name: str) -> None:
        """Give an interface that is down another name."""

    def set_mac(self, link: Found, mac: str) -> None:
        """Give an interface another address."""

    def set_mtu(self, link: Found, mtu: int) -> None:
        """Set the largest packet, in bytes."""

    def set_controller(self, link: Found, controller: str) -> None:
        """Make an interface a port of a bridge; of none, if ``controller`` is ""."""

    def set_learning(self, link: Found, on: bool) -> None:
        """Let a bridge learn addresses at a port of its, or not."""

    def addresses(self, link: Found) -> list[Address]:
        """The addresses of an interface."""

    def add_address(self, link: Found, address: Address) -> None:
        """Add an address; no error when it is there."""

    def delete_address(self, link: Found, address: Address) -> None:
        """Take an address away."""

    def add_route(self, link: Found, route: PodRoute) -> None:
        """Add a route; no error when it is there."""

    def set_route_localnet(self, name: str) -> None:
        """Let an interface route 127.0.0.0/8."""

    def set_forwarding(self, version: int, on: bool) -> None:
        """Forward packets of an IP version."""

    def set_arp_ignore(self, mode: int) -> None:
        """Say which ARP requests are answered, on all interfaces (``ip-sysctl``)."""

    def set_ping_group_range(self, first: int, last: int) -> None:
        """Say which groups may send pings."""

    def set_unprivileged_port_start(self, port: int) -> None:
        """Say from which port on anybody may listen."""

    def load_nft(self, rulesets: Iterable[Ruleset]) -> None:
        """Put these rules in place of those that their chains have."""
