"""Changing a pod's network, and changing it back (``pkg/network/driver/nmstate/spec.go``)."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from ipaddress import IPv4Interface, IPv6Interface

from kvnode.net.driver import Address, Driver, Found
from kvnode.net.errors import NetError
from kvnode.net.state import ABSENT, DUMMY, TAP, UP, VETH, PodLink, Status, Wanted, WantedLink, WantedStack

logger = logging.getLogger(__name__)


class Changes:
    """Brings a pod's network to what is wanted, and remembers enough to undo it."""

    def __init__(self, driver: Driver, before: Status) -> None:
        """``before`` is what is there."""
        self._driver = driver
        self._before = before
        self._made: list[str] = []
        self._touched: set[int] = set()
        self._has_changed_stack = False

    def apply(self, wanted: Wanted) -> None:
        """Make the changes, in order; raises NetError at the first that fails."""
        for link in wanted.links:
            try:
                self._link(link)
            except NetError as error:
                raise NetError(f"interface {link.name}: {error}") from error
        self._has_changed_stack = True
        self._stack(wanted.stack)

    def undo(self) -> None:
        """Bring back what was there, as far as possible: what fails is logged."""
        for name in reversed(self._made):
            self._try(f"{name} is left", lambda name=name: self._delete(name))  # type: ignore[misc]
        for link in self._before.links:
            if link.index in self._touched:
                self._try(f"{link.name} is left changed", lambda link=link: self._restore(link))  # type: ignore[misc]
        if self._has_changed_stack:
            self._try("settings are left changed", self._restore_stack)

    @staticmethod
    def _try(otherwise: str, step: Callable[[], None]) -> None:
        try:
            step()
        except NetError as error:
            logger.warning("undoing the set-up of a pod's network: %s: %s", otherwise, error)

    def _link(self, wanted: WantedLink) -> None:
        driver = self._driver
        link = driver.at(wanted.index) if wanted.index else driver.find(wanted.name)
        if wanted.state == ABSENT:
            if link is not None:
                driver.delete_link(link)
            return
        mac = wanted.mac
        if wanted.copy_mac_from:
            source = driver.find(wanted.copy_mac_from)
            if source is None:
                raise NetError(f"{wanted.copy_mac_from}, whose MAC address it is to have, is not there")
            mac = source.mac
        if link is None:
            link = self._make(wanted)
        elif wanted.index:
            self._touched.add(link.index)
        kinds = (wanted.kind, VETH) if wanted.kind == DUMMY else (wanted.kind,)
        if wanted.kind and link.kind not in kinds:
            raise NetError(
                f"is there already, and is no {wanted.kind} but a {link.kind or 'plain interface'}"
            )
        if not link.is_running:
            self._configure(wanted, link, mac)
            return
        # Neither a name nor an address is changed while packets flow.
        driver.set_down(link)
        try:
            self._configure(wanted, link, mac)
        finally:
            driver.set_up(link)

    def _make(self, wanted: WantedLink) -> Found:
        if not wanted.kind:
            raise NetError("is gone")
        if wanted.kind == TAP and wanted.tap is not None:
            made = self._driver.add_tap(wanted.name, wanted.tap, wanted.mtu, wanted.pid)
        else:
            made = self._driver.add_link(wanted.name, wanted.kind)
        self._made.append(wanted.name)
        return made

    def _configure(self, wanted: WantedLink, link: Found, mac: str) -> None:
        driver = self._driver
        if wanted.name != link.name:
            driver.rename(link, wanted.name)
        if mac and mac != link.mac:
            driver.set_mac(link, mac)
        if wanted.mtu and wanted.mtu != link.mtu:
            driver.set_mtu(link, wanted.mtu)
        if wanted.controller:
            driver.set_controller(link, wanted.controller)
        for address in driver.addresses(link):
            driver.delete_address(link, address)
        for address in _all(wanted.ipv4 or (), wanted.ipv6 or ()):
            driver.add_address(link, address)
        if wanted.state == UP:
            driver.set_up(link)
        if wanted.route_localnet:
            driver.set_route_localnet(wanted.name)
        if wanted.learning_off:
            driver.set_learning(link, False)

    def _stack(self, wanted: WantedStack) -> None:
        for version, is_wanted in ((4, wanted.forwarding4), (6, wanted.forwarding6)):
            if is_wanted:
                self._driver.set_forwarding(version, True)
        if wanted.arp_ignore is not None:
            self._driver.set_arp_ignore(wanted.arp_ignore)
        if wanted.ping_group_range is not None:
            self._driver.set_ping_group_range(*wanted.ping_group_range)
        if wanted.unprivileged_port_start is not None:
            self._driver.set_unprivileged_port_start(wanted.unprivileged_port_start)

    def _delete(self, name: str) -> None:
        link = self._driver.find(name)
        if link is not None:
            self._driver.delete_link(link)

    def _restore(self, before: PodLink) -> None:
        driver = self._driver
        link = driver.at(before.index)
        if link is None:
            raise NetError("it is gone")
        driver.set_down(link)
        driver.set_controller(link, before.controller)
        if link.name != before.name:
            driver.rename(link, before.name)
        if link.mac != before.mac:
            driver.set_mac(link, before.mac)
        if link.mtu != before.mtu:
            driver.set_mtu(link, before.mtu)
        if before.controller:
            driver.set_learning(link, before.learning)
        for address in _all(before.ipv4, before.ipv6):
            driver.add_address(link, address)
        if before.is_up:
            driver.set_up(link)
        # Of routes through a gateway, the way to the gateway must be there first.
        routes = [route for route in self._before.routes if route.link == before.name]
        for route in sorted(routes, key=lambda route: route.gateway is not None):
            driver.add_route(link, route)

    def _restore_stack(self) -> None:
        before, now = self._before.stack, self._driver.read().stack
        if now.forwarding4 != before.forwarding4:
            self._driver.set_forwarding(4, before.forwarding4)
        if now.forwarding6 != before.forwarding6:
            self._driver.set_forwarding(6, before.forwarding6)
        if now.arp_ignore != before.arp_ignore:
            self._driver.set_arp_ignore(before.arp_ignore)
        if now.ping_group_range != before.ping_group_range:
            self._driver.set_ping_group_range(*before.ping_group_range)
        if now.unprivileged_port_start != before.unprivileged_port_start:
            self._driver.set_unprivileged_port_start(before.unprivileged_port_start)


def _all(ipv4: Sequence[IPv4Interface], ipv6: Sequence[IPv6Interface]) -> list[Address]:
    return [*ipv4, *ipv6]
