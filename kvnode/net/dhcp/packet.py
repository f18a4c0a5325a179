"""DHCPv4 packets (RFC 2131): what a request asks, and the answer to it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from ipaddress import IPv4Address

from kvnode.net.dhcp.options import LEASE_TIME, MESSAGE_TYPE, SERVER_ID

DISCOVER, OFFER, REQUEST, ACK = 1, 2, 3, 5
_MESSAGE_TYPES = range(1, 9)

#: Seconds that an address is the guest's: 999 days, which is as good as for ever
#: (``pkg/network/dhcp/server/server.go:40``).
LEASE_SECONDS = 999 * 24 * 3600

_BOOT_REQUEST, _BOOT_REPLY, _ETHERNET = 1, 2, 1
_COOKIE = bytes((99, 130, 83, 99))
_FIXED = 240
_PAD, _END = 0, 255
_LONGEST_ADDRESS = 16
# The least that BOOTP's 300 bytes leave beside the headers of IP and UDP.
_SMALLEST = 272


@dataclass(frozen=True)
class Request:
    """The parts of a request that its answer depends on."""

    kind: int
    transaction: bytes
    flags: bytes
    relay: bytes
    hardware: bytes
    """The client's address; as long as the request says."""

    @property
    def broadcast(self) -> bool:
        """Whether the client cannot be reached by its address yet."""
        return bool(self.flags[0] & 0x80)


def parse(data: bytes) -> Request | None:
    """Read a request; None for what is none. Nothing that a guest sends makes it raise."""
    if len(data) < _FIXED or data[0] != _BOOT_REQUEST or data[236:_FIXED] != _COOKIE:
        return None
    length = data[2]
    kind = _options(data).get(MESSAGE_TYPE, b"")
    if length > _LONGEST_ADDRESS or len(kind) != 1 or kind[0] not in _MESSAGE_TYPES:
        return None
    return Request(kind[0], data[4:8], data[10:12], data[24:28], data[28 : 28 + length])


def _options(data: bytes) -> dict[int, bytes]:
    found: dict[int, bytes] = {}
    at = _FIXED
    while at + 1 < len(data) and data[at] != _END:
        if data[at] == _PAD:
            at += 1
            continue
        end = at + 2 + data[at + 1]
        if end > len(data):
            break
        found[data[at]] = data[at + 2 : end]
        at = end
    return found


def answer(
    request: Request,
    *,
    server: IPv4Address,
    client: IPv4Address,
    client_mac: bytes,
    options: Mapping[int, bytes],
) -> bytes | None:
    """Answer DISCOVER with an offer and REQUEST with an acknowledgement; None for all else.

    With a ``client_mac``, others are not answered. Whatever address a request names, the answer names the
    guest's own.
    """
    if client_mac and request.hardware != client_mac:
        return None
    kind = {DISCOVER: OFFER, REQUEST: ACK}.get(request.kind)
    if kind is None:
        return None
    head = bytes((_BOOT_REPLY, _ETHERNET, len(request.hardware), 0)) + request.transaction + bytes(2)
    addresses = bytes(4) + client.packed + bytes(4) + request.relay
    packet = bytearray(head + request.flags + addresses + request.hardware.ljust(_LONGEST_ADDRESS, b"\0"))
    packet += bytes(_FIXED - len(_COOKIE) - len(packet)) + _COOKIE
    fixed = {
        MESSAGE_TYPE: bytes([kind]),
        SERVER_ID: server.packed,
        LEASE_TIME: LEASE_SECONDS.to_bytes(4, "big"),
    }
    for code, value in (*fixed.items(), *sorted(options.items())):
        packet += _encoded(code, value)
    packet.append(_END)
    return bytes(packet.ljust(_SMALLEST, b"\0"))


def _encoded(code: int, value: bytes) -> bytes:
    """One option; a value of more than 255 bytes is split (RFC 3396)."""
    pieces = [value[start : start + 255] for start in range(0, len(value), 255)] or [b""]
    return b"".join(bytes((code, len(piece))) + piece for piece in pieces)
