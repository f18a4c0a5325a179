"""A network namespace in memory that writes down what is changed in it."""

from __future__ import annotations

import ipaddress
from collections.abc import Callable, Iterable
from dataclasses import replace
from ipaddress import IPv4Interface, IPv6Interface
from typing import Any

from kvnode.net.driver import Address, Driver, Found
from kvnode.net.errors import NetError
from kvnode.net.nft import HOOKS, TABLE, Match, Rule, Ruleset
from kvnode.net.state import PodLink, PodRoute, Stack, Status, Tap

BRIDGE_MAC = "<mac-of-the-bridge>"


class Recorder:
    """It is its own driver."""

    def __init__(self) -> None:
        """Nothing is there, ``lo`` neither."""
        self.links: dict[int, PodLink] = {}
        self.routes: list[PodRoute] = []
        self.ops: list[str] = []
        self.rules: list[str] = []
        self.read_first: Status | None = None
        self.fails_at = ""
        """The start of an operation that fails."""

    def run(self, work: Callable[[Driver], None]) -> None:
        """Be the pod's namespace."""
        work(self)

    def add_pod_link(self, link: dict[str, Any]) -> None:
        """What a container network plugin made, as the cases have it."""
        addresses = [ipaddress.ip_interface(one) for one in link["addresses"] or ()]
        index = max(self.links, default=0) + 1
        self.links[index] = PodLink(
            index,
            link["name"],
            "veth",
            "up",
            link["mac"],
            link["mtu"],
            is_up=True,
            ipv4=tuple(one for one in addresses if isinstance(one, IPv4Interface)),
            ipv6=tuple(one for one in addresses if isinstance(one, IPv6Interface)),
        )
        for route in link["routes"] or ():
            destination, _, gateway = route.partition(" via ")
            network = ipaddress.ip_network("0.0.0.0/0" if destination == "default" else destination)
            via = None if gateway == "-" else ipaddress.ip_address(gateway)
            self.routes.append(PodRoute(network, link["name"], via))

    def read(self) -> Status:
        status = Status(tuple(self.links.values()), tuple(self.routes), Stack())
        self.read_first = self.read_first or status
        return status

    def find(self, name: str) -> Found | None:
        return next((self.at(link.index) for link in self.links.values() if link.name == name), None)

    def at(self, index: int) -> Found | None:
        link = self.links.get(index)
        return link and Found(index, link.name, link.kind, link.mac, link.mtu, link.state == "up")

    def add_link(self, name: str, kind: str) -> Found:
        self._write(f"link-add type={kind} name={name}")
        index = max(self.links, default=0) + 1
        mac = BRIDGE_MAC if kind == "bridge" else ""
        self.links[index] = PodLink(index, name, kind, "down", mac, 1500)
        return Found(index, name, kind)

    def add_tap(self, name: str, tap: Tap, mtu: int, pid: int) -> Found:
        self._write(f"tap-create name={name} mtu={mtu} queues={tap.queues} owner={tap.owner} pid={pid}")
        index = max(self.links, default=0) + 1
        self.links[index] = PodLink(index, name, "tap", "down", "", mtu)
        return Found(index, name, "tap", mtu=mtu)

    def delete_link(self, link: Found) -> None:
        self._write(f"link-del name={link.name}")
        del self.links[link.index]

    def set_up(self, link: Found) -> None:
        self._change(link, "link-up name={}", is_up=True)

    def set_down(self, link: Found) -> None:
        self._change(link, "link-down name={}", is_up=False, state="down", ipv6=())

    def rename(self, link: Found, name: str) -> None:
        self._change(link, f"link-rename from={{}} to={name}", name=name)

    def set_mac(self, link: Found, mac: str) -> None:
        self._change(link, f"link-mac name={{}} mac={mac}", mac=mac)

    def set_mtu(self, link: Found, mtu: int) -> None:
        self._change(link, f"link-mtu name={{}} mtu={mtu}", mtu=mtu)

    def set_controller(self, link: Found, controller: str) -> None:
        self._change(link, f"link-master name={{}} master={controller}", controller=controller)

    def set_learning(self, link: Found, on: bool) -> None:
        self._change(link, f"link-learning-{'on' if on else 'off'} name={{}}", learning=on)

    def addresses(self, link: Found) -> list[Address]:
        # As the cases' stand-in has it: an interface that goes down loses them.
        found = self.links[link.index]
        return [*found.ipv4, *found.ipv6] if found.is_up else []

    def add_address(self, link: Found, address: Address) -> None:
        self._write(f"addr-add name={self.links[link.index].name} addr={address}")
        found = self.links[link.index]
        field = f"ipv{address.version}"
        self.links[link.index] = replace(found, **{field: (*getattr(found, field), address)})

    def delete_address(self, link: Found, address: Address) -> None:
        self._write(f"addr-del name={self.links[link.index].name} addr={address}")

    def add_route(self, link: Found, route: PodRoute) -> None:
        self._write(f"route-add name={self.links[link.index].name} to={route.destination}")

    def set_route_localnet(self, name: str) -> None:
        self._write(f"sysctl route-localnet if={name}")

    def set_forwarding(self, version: int, on: bool) -> None:
        self._write(f"sysctl ipv{version}-forwarding={int(on)}")

    def set_arp_ignore(self, mode: int) -> None:
        self._write(f"sysctl arp-ignore if=all mode={mode}")

    def set_ping_group_range(self, first: int, last: int) -> None:
        self._write(f"sysctl ping-group-range={first}-{last}")

    def set_unprivileged_port_start(self, port: int) -> None:
        self._write(f"sysctl unprivileged-port-start={port}")

    def load_nft(self, rulesets: Iterable[Ruleset]) -> None:
        if self.fails_at == "nft":
            raise NetError("refused")
        self.rules += [line for one in rulesets for line in lines_of(one)]

    def _change(self, link: Found, what: str, **changes: Any) -> None:
        self._write(what.format(self.links[link.index].name))
        self.links[link.index] = replace(self.links[link.index], **changes)

    def _write(self, operation: str) -> None:
        if self.fails_at and operation.startswith(self.fails_at):
            self.fails_at = ""
            raise NetError(f"{operation}: refused")
        self.ops.append(operation)


def lines_of(ruleset: Ruleset) -> list[str]:
    """Rules as they are written on nft's command line."""
    table = f"{ruleset.family} {TABLE}"
    hooks = [
        f"add chain {table} {name} {{ type nat hook {name} priority {priority}; }}"
        for name, priority in HOOKS.items()
    ]
    chains = [f"add chain {table} {name}" for name in ruleset.chains]
    rules = [f"add rule {table} {rule.chain} {_rule(rule)}" for rule in ruleset.rules]
    return [f"add table {table}", *hooks, *chains, *rules]


def _rule(rule: Rule) -> str:
    verdict = rule.verdict.name
    if rule.verdict.operand:
        verdict += f" {'' if verdict == 'jump' else 'to '}{rule.verdict.operand}"
    return " ".join([*map(_match, rule.matches), "counter", verdict])


def _match(match: Match) -> str:
    value: Any = match.value
    if isinstance(value, range):
        value = f"{value.start}-{value.stop - 1}"
    elif isinstance(value, tuple):
        value = f"{{ {', '.join(map(str, value))} }}"
    return f"{'' if match.base == 'meta' else match.base + ' '}{match.field} {value}"
