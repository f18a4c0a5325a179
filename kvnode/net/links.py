"""Links and addresses of this process's network namespace, asked of the kernel by netlink.

A launcher needs a handful of facts once, which is not worth a netlink library in its memory.
"""

from __future__ import annotations

import socket
import struct
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from ipaddress import IPv4Address, IPv6Address

_RTM_GETLINK, _RTM_NEWLINK, _RTM_GETADDR, _RTM_NEWADDR = 18, 16, 22, 20
_NLMSG_ERROR, _NLMSG_DONE = 2, 3
_NLM_F_REQUEST, _NLM_F_DUMP = 1, 0x300
_IFLA_ADDRESS, _IFLA_IFNAME, _IFLA_MTU = 1, 3, 4
_IFA_ADDRESS, _IFA_LOCAL = 1, 2
_MESSAGE = struct.Struct("=IHHII")
_LINK = struct.Struct("=BxHiII")
_ADDRESS = struct.Struct("=BBBBI")
_ATTRIBUTE = struct.Struct("=HH")


@dataclass(frozen=True)
class Link:
    """A network interface."""

    index: int
    name: str
    mac: bytes
    mtu: int

    @property
    def mac_text(self) -> str:
        """The MAC address as it is written."""
        return self.mac.hex(":")


def find(name: str) -> Link | None:
    """Return the link of that name, None when there is none; raises OSError."""
    return next((link for link in _links() if link.name == name), None)


def addresses(link: Link) -> list[IPv4Address | IPv6Address]:
    """Return the addresses of a link; raises OSError."""
    found: list[IPv4Address | IPv6Address] = []
    for body in _dump(_RTM_GETADDR, _RTM_NEWADDR, _ADDRESS.pack(socket.AF_UNSPEC, 0, 0, 0, 0)):
        family, _, _, _, index = _ADDRESS.unpack_from(body)
        attributes = dict(_attributes(body, _ADDRESS.size))
        # Of a point-to-point link, the other is the peer's.
        packed = attributes.get(_IFA_LOCAL, attributes.get(_IFA_ADDRESS, b""))
        if index != link.index:
            continue
        if family == socket.AF_INET and len(packed) == 4:
            found.append(IPv4Address(packed))
        elif family == socket.AF_INET6 and len(packed) == 16:
            found.append(IPv6Address(packed))
    return found


def is_global_unicast(address: IPv4Address | IPv6Address) -> bool:
    """Tell whether an address is one to reach a machine by from elsewhere, a private network's included."""
    broadcast = isinstance(address, IPv4Address) and int(address) == 0xFFFFFFFF
    local = address.is_loopback or address.is_link_local or address.is_multicast
    return not (broadcast or local or address.is_unspecified)


def _links() -> Iterator[Link]:
    for body in _dump(_RTM_GETLINK, _RTM_NEWLINK, _LINK.pack(socket.AF_UNSPEC, 0, 0, 0, 0)):
        attributes = dict(_attributes(body, _LINK.size))
        name = attributes.get(_IFLA_IFNAME, b"").rstrip(b"\0").decode(errors="replace")
        mtu = int.from_bytes(attributes.get(_IFLA_MTU, b""), sys.byteorder)
        yield Link(_LINK.unpack_from(body)[2], name, attributes.get(_IFLA_ADDRESS, b""), mtu)


def _dump(request: int, wanted: int, body: bytes) -> Iterator[bytes]:
    """Yield the bodies of the kernel's answers to a dump request."""
    with socket.socket(
        socket.AF_NETLINK, socket.SOCK_RAW | socket.SOCK_CLOEXEC, socket.NETLINK_ROUTE
    ) as asked:
        asked.bind((0, 0))
        header = _MESSAGE.pack(_MESSAGE.size + len(body), request, _NLM_F_REQUEST | _NLM_F_DUMP, 1, 0)
        asked.send(header + body)
        while True:
            data = asked.recv(1 << 16)
            at = 0
            while at + _MESSAGE.size <= len(data):
                length, kind, _, _, _ = _MESSAGE.unpack_from(data, at)
                if kind == _NLMSG_DONE:
                    return
                if kind == _NLMSG_ERROR:
                    number = -struct.unpack_from("=i", data, at + _MESSAGE.size)[0]
                    raise OSError(number, "the kernel refuses to list its network interfaces")
                if kind == wanted:
                    yield data[at + _MESSAGE.size : at + length]
                at += (length + 3) & ~3


def _attributes(body: bytes, start: int) -> Iterator[tuple[int, bytes]]:
    at = start
    while at + _ATTRIBUTE.size <= len(body):
        length, kind = _ATTRIBUTE.unpack_from(body, at)
        if length < _ATTRIBUTE.size:
            return
        yield kind & 0x3FFF, body[at + _ATTRIBUTE.size : at + length]
        at += (length + 3) & ~3
