"""The calling thread's network namespace, by netlink and /proc/sys."""

from __future__ import annotations

import errno
import ipaddress
from collections.abc import Callable, Iterable
from ipaddress import IPv4Interface, IPv6Interface
from pathlib import Path
from types import TracebackType
from typing import Any

from pyroute2 import IPRoute  # type: ignore[import-untyped]
from pyroute2.netlink.exceptions import NetlinkDumpInterrupted, NetlinkError  # type: ignore[import-untyped]

from kvnode.net import names, nft, tap
from kvnode.net.driver import Address, Found
from kvnode.net.errors import NetError
from kvnode.net.state import (
    DUMMY,
    MAIN_TABLE,
    TAP,
    VETH,
    PodLink,
    PodRoute,
    Stack,
    Status,
    Tap,
)

_FAMILIES = {4: 2, 6: 10}
_ANYWHERE = {4: "0.0.0.0", 6: "::"}  # noqa: S104 - a destination, not bound to
_IFF_UP = 1
_UNICAST = 1
# Nobody else can have these addresses: guest and pod would wait a second for nothing.
_NO_DUPLICATES = 0x02
_SYSCTL = Path("/proc/sys/net")
_RUNNING = ("up", "lowerlayerdown")
_DUMPS = 5


class Kernel:
    """One netlink socket, which is closed at the end of the block.

    A socket that is kept grows with each request in pyroute2 0.9, and belongs to the thread that made it.
    """

    def __enter__(self) -> Kernel:
        try:
            self._socket = IPRoute()
        except OSError as error:
            raise NetError(f"netlink: no socket: {error.strerror}") from None
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None
    ) -> None:
        self._socket.close()

    def read(self) -> Status:
        """Read interfaces, addresses, routes and settings."""
        messages = self._dump("get_links")
        by_index = {message["index"]: message.get_attr("IFLA_IFNAME") for message in messages}
        ipv4: dict[int, list[IPv4Interface]] = {}
        ipv6: dict[int, list[IPv6Interface]] = {}
        for message in self._dump("get_addr"):
            address = _address(message)
            if isinstance(address, IPv4Interface):
                ipv4.setdefault(message["index"], []).append(address)
            elif address is not None:
                ipv6.setdefault(message["index"], []).append(address)
        links = []
        for message in messages:
            index, name = message["index"], message.get_attr("IFLA_IFNAME")
            found = _found(message)
            links.append(
                PodLink(
                    index=index,
                    name=name,
                    kind=found.kind,
                    state=_state(message),
                    mac=found.mac,
                    mtu=found.mtu,
                    is_up=bool(message["flags"] & _IFF_UP),
                    controller=by_index.get(message.get_attr("IFLA_MASTER") or 0, ""),
                    ipv4=tuple(ipv4.get(index, ())),
                    ipv6=tuple(ipv6.get(index, ())),
                    route_localnet=_read(f"ipv4/conf/{name}/route_localnet", "0") == "1",
                    learning=_learning(message),
                )
            )
        return Status(tuple(links), tuple(self._routes(by_index)), _stack())

    def _routes(self, by_index: dict[int, str]) -> list[PodRoute]:
        found = []
        for version, family in _FAMILIES.items():
            for message in self._dump("get_routes", family=family):
                link = by_index.get(message.get_attr("RTA_OIF") or 0)
                table = message.get_attr("RTA_TABLE") or message["table"]
                if table != MAIN_TABLE or message["type"] != _UNICAST or link is None:
                    continue
                destination = message.get_attr("RTA_DST") or _ANYWHERE[version]
                gateway, source = message.get_attr("RTA_GATEWAY"), message.get_attr("RTA_PREFSRC")
                found.append(
                    PodRoute(
                        ipaddress.ip_network((destination, message["dst_len"])),
                        link,
                        ipaddress.ip_address(gateway) if gateway else None,
                        table,
                        message.get_attr("RTA_PRIORITY") or 0,
                        ipaddress.ip_address(source) if source else None,
                        message["proto"],
                    )
                )
        return found

    def find(self, name: str) -> Found | None:
        """Look an interface up by name."""
        return self._get(ifname=name)

    def at(self, index: int) -> Found | None:
        """Look an interface up by index."""
        return self._get(index=index)

    def _get(self, **by: Any) -> Found | None:
        try:
            messages = list(self._socket.link("get", **by))
        except NetlinkError as error:
            if error.code == errno.ENODEV:
                return None
            raise NetError(f"netlink: looking it up: {_reason(error)}") from None
        return _found(messages[0]) if messages else None

    def add_link(self, name: str, kind: str) -> Found:
        """Make an interface; a pair of ``veth`` where the kernel has no dummies."""
        try:
            self._socket.link("add", ifname=name, kind=kind)
        except NetlinkError as error:
            if kind != DUMMY or error.code != errno.EOPNOTSUPP:
                raise NetError(f"netlink: making it: {_reason(error)}") from None
            kind = VETH
            peer = {"ifname": names.stand_in(name)}
            self._do("making one in a dummy's place", "link", "add", ifname=name, kind=VETH, peer=peer)
        made = self.find(name)
        if made is None:
            raise NetError("it is gone as soon as it was made")
        return Found(made.index, name, kind)

    def add_tap(self, name: str, tap_: Tap, mtu: int, pid: int) -> Found:
        """Make a tap."""
        tap.create(name, owner=tap_.owner, queues=tap_.queues, pid=pid)
        made = self.find(name)
        if made is None:
            raise NetError("it is gone as soon as it was made")
        if mtu:
            self.set_mtu(made, mtu)
        return Found(made.index, name, TAP, mtu=mtu)

    def delete_link(self, link: Found) -> None:
        """Delete an interface."""
        self._do("deleting it", "link", "del", index=link.index)

    def set_up(self, link: Found) -> None:
        """Switch an interface on."""
        self._do("switching it on", "link", "set", index=link.index, state="up")

    def set_down(self, link: Found) -> None:
        """Switch an interface off."""
        self._do("switching it off", "link", "set", index=link.index, state="down")

    def rename(self, link: Found, name: str) -> None:
        """Rename an interface."""
        self._do("renaming it", "link", "set", index=link.index, ifname=name)

    def set_mac(self, link: Found, mac: str) -> None:
        """Set an interface's MAC address."""
        self._do("setting its MAC address", "link", "set", index=link.index, address=mac)

    def set_mtu(self, link: Found, mtu: int) -> None:
        """Set an interface's MTU."""
        self._do(f"setting its MTU to {mtu}", "link", "set", index=link.index, mtu=mtu)

    def set_controller(self, link: Found, controller: str) -> None:
        """Put an interface into a bridge, or out of any."""
        index = 0
        if controller:
            bridge = self.find(controller)
            if bridge is None:
                raise NetError(f"the bridge {controller} is not there")
            index = bridge.index
        self._do("putting it into its bridge", "link", "set", index=link.index, master=index)

    def set_learning(self, link: Found, on: bool) -> None:
        """Switch learning on or off."""
        self._do("setting how its bridge learns", "brport", "set", index=link.index, learning=int(on))

    def addresses(self, link: Found) -> list[Address]:
        """List an interface's addresses."""
        messages = self._dump("get_addr", index=link.index)
        found = (_address(message) for message in messages if message["index"] == link.index)
        return [address for address in found if address is not None]

    def add_address(self, link: Found, address: Address) -> None:
        """Add an address."""
        more = {"flags": _NO_DUPLICATES} if address.version == 6 else {}
        self._address("add", errno.EEXIST, link, address, **more)

    def delete_address(self, link: Found, address: Address) -> None:
        """Delete an address, which may be gone with an interface that was switched off."""
        self._address("del", errno.EADDRNOTAVAIL, link, address)

    def _address(self, command: str, ignored: int, link: Found, address: Address, **more: Any) -> None:
        try:
            self._socket.addr(
                command,
                index=link.index,
                address=str(address.ip),
                prefixlen=address.network.prefixlen,
                family=_FAMILIES[address.version],
                **more,
            )
        except NetlinkError as error:
            if error.code != ignored:
                raise NetError(f"netlink: {command} {address}: {_reason(error)}") from None

    def add_route(self, link: Found, route: PodRoute) -> None:
        """Add a route."""
        more: dict[str, Any] = {
            "family": _FAMILIES[route.destination.version],
            "table": route.table,
            "proto": route.protocol,
        }
        if route.gateway is not None:
            more["gateway"] = str(route.gateway)
        else:
            more["scope"] = 253 if route.destination.version == 4 else 0
        if route.source is not None:
            more["prefsrc"] = str(route.source)
        if route.priority:
            more["priority"] = route.priority
        try:
            self._socket.route("add", dst=str(route.destination), oif=link.index, **more)
        except NetlinkError as error:
            if error.code != errno.EEXIST:
                raise NetError(f"netlink: route to {route.destination}: {_reason(error)}") from None

    def set_route_localnet(self, name: str) -> None:
        """Write ``route_localnet``."""
        _write(f"ipv4/conf/{name}/route_localnet", "1")

    def set_forwarding(self, version: int, on: bool) -> None:
        """Write ``ip_forward`` or its like."""
        _write("ipv4/ip_forward" if version == 4 else "ipv6/conf/all/forwarding", str(int(on)))

    def set_arp_ignore(self, mode: int) -> None:
        """Write ``arp_ignore``."""
        _write("ipv4/conf/all/arp_ignore", str(mode))

    def set_ping_group_range(self, first: int, last: int) -> None:
        """Write ``ping_group_range``."""
        _write("ipv4/ping_group_range", f"{first} {last}")

    def set_unprivileged_port_start(self, port: int) -> None:
        """Write ``ip_unprivileged_port_start``."""
        _write("ipv4/ip_unprivileged_port_start", str(port))

    def load_nft(self, rulesets: Iterable[nft.Ruleset]) -> None:
        """Load the rules by ``nft``, which inherits this thread's namespace."""
        nft.load(rulesets)

    def _do(self, what: str, request: str, *arguments: Any, **more: Any) -> None:
        self._asked(what, lambda: getattr(self._socket, request)(*arguments, **more))

    def _dump(self, request: str, **more: Any) -> list[Any]:
        for left in reversed(range(_DUMPS)):
            try:
                found = self._asked("listing", lambda: list(getattr(self._socket, request)(**more)))
            except NetlinkDumpInterrupted:
                # Something changed meanwhile, and the list may have holes.
                if not left:
                    raise NetError("netlink: listing: it keeps changing") from None
            else:
                return list(found)
        return []

    @staticmethod
    def _asked(what: str, request: Callable[[], Any]) -> Any:
        try:
            return request()
        except NetlinkDumpInterrupted:
            raise
        except NetlinkError as error:
            raise NetError(f"netlink: {what}: {_reason(error)}") from None
        except OSError as error:
            raise NetError(f"netlink: {what}: {error.strerror or error}") from None


def _reason(error: Any) -> str:
    return str(error.args[-1]) if error.args else type(error).__name__


def _found(message: Any) -> Found:
    info = message.get_attr("IFLA_LINKINFO")
    kind = (info.get_attr("IFLA_INFO_KIND") if info is not None else None) or ""
    name, mac = message.get_attr("IFLA_IFNAME"), message.get_attr("IFLA_ADDRESS") or ""
    # A namespace without taps of ours may have a "tun" device without Ethernet: that has no MAC address.
    kind = TAP if kind in {"tuntap", "tun"} and mac else kind
    mtu = message.get_attr("IFLA_MTU") or 0
    return Found(message["index"], name, kind, mac, mtu, _state(message) in _RUNNING)


def _state(message: Any) -> str:
    return str(message.get_attr("IFLA_OPERSTATE") or "unknown").lower()


def _learning(message: Any) -> bool:
    info = message.get_attr("IFLA_LINKINFO")
    data: Any = info.get_attr("IFLA_INFO_SLAVE_DATA") if info is not None else None
    # Data of a kind that is not known comes as it is.
    read = getattr(data, "get_attr", None)
    return read is not None and bool(read("IFLA_BRPORT_LEARNING"))


def _address(message: Any) -> Address | None:
    # Of a point-to-point link, IFA_ADDRESS is the peer's.
    text = message.get_attr("IFA_LOCAL") or message.get_attr("IFA_ADDRESS")
    return ipaddress.ip_interface((text, message["prefixlen"])) if text else None


def _stack() -> Stack:
    first, _, last = _read("ipv4/ping_group_range", "1\t0").partition("\t")
    return Stack(
        arp_ignore=int(_read("ipv4/conf/all/arp_ignore", "0")),
        forwarding4=_read("ipv4/ip_forward", "0") == "1",
        forwarding6=_read("ipv6/conf/all/forwarding", "0") == "1",
        ping_group_range=(int(first), int(last)),
        unprivileged_port_start=int(_read("ipv4/ip_unprivileged_port_start", "1024")),
    )


def _read(name: str, otherwise: str) -> str:
    """A setting; ``otherwise`` where the kernel has none, as for IPv6 when that is off."""
    try:
        return (_SYSCTL / name).read_text().strip()
    except FileNotFoundError:
        return otherwise
    except OSError as error:
        raise NetError(f"{_SYSCTL / name}: {error.strerror}") from None


def _write(name: str, value: str) -> None:
    try:
        (_SYSCTL / name).write_text(value)
    except OSError as error:
        raise NetError(f"{_SYSCTL / name}: cannot be set to {value!r}: {error.strerror}") from None
