"""DHCPv6 messages (RFC 8415): the answer to a client's."""

from __future__ import annotations

from collections.abc import Sequence
from ipaddress import IPv6Address

from kvnode.net.dhcp.packet import LEASE_SECONDS

SOLICIT, ADVERTISE, REPLY = 1, 2, 7
# Request, Confirm, Renew, Rebind, Release, Information-request
_ANSWERED = frozenset({3, 4, 5, 6, 8, 11})

_CLIENT_ID, _SERVER_ID, _IA_NA, _IA_ADDRESS, _RAPID_COMMIT, _NAME_SERVERS = 1, 2, 3, 5, 14, 23
_HEADER = 4
_IA_HEADER = 12
_DUID_LL, _ETHERNET = 3, 1
# The least length of an identifier of each known type; a UUID has exactly this one.
_DUID_LENGTHS = {1: 8, 2: 6, _DUID_LL: 4, 4: 18}
_DUID_UUID = 4


def answer(
    data: bytes, *, client: IPv6Address, server_mac: bytes, nameservers: Sequence[IPv6Address]
) -> bytes | None:
    """Answer a message (``pkg/network/dhcp/serverv6/serverv6.go:90``); None for what gets no answer.

    A Solicit gets an Advertise, with the rapid-commit option a Reply; any other request a Reply. Each names
    the guest's address, the server and the name servers. Messages of relays and servers, malformed ones and
    ones without a client identifier get none.
    """
    kind = data[0] if data else 0
    options = _options(data[_HEADER:]) if len(data) >= _HEADER else None
    if options is None or (kind != SOLICIT and kind not in _ANSWERED):
        return None
    client_id = _first(options, _CLIENT_ID)
    association = _first(options, _IA_NA)
    if client_id is None or not _is_duid(client_id) or not _is_association(association):
        return None
    rapid = kind == SOLICIT and _first(options, _RAPID_COMMIT) is not None
    lease = LEASE_SECONDS.to_bytes(4, "big")
    address = _option(_IA_ADDRESS, client.packed + lease + lease)
    identity = association[:4] if association is not None else bytes(4)
    parts = [
        bytes([ADVERTISE if kind == SOLICIT and not rapid else REPLY]) + data[1:_HEADER],
        _option(_CLIENT_ID, client_id),
        _option(_RAPID_COMMIT, b"") if rapid else b"",
        # T1 and T2 of 0 leave the time of renewal to the client.
        _option(_IA_NA, identity + bytes(8) + address),
        _option(_SERVER_ID, bytes((0, _DUID_LL, 0, _ETHERNET)) + server_mac),
    ]
    if nameservers:
        parts.append(_option(_NAME_SERVERS, b"".join(server.packed for server in nameservers)))
    return b"".join(parts)


def _option(code: int, value: bytes) -> bytes:
    return code.to_bytes(2, "big") + len(value).to_bytes(2, "big") + value


def _options(data: bytes) -> list[tuple[int, bytes]] | None:
    """Split options; None when they do not fill the data exactly."""
    found = []
    at = 0
    while at < len(data):
        end = at + 4 + int.from_bytes(data[at + 2 : at + 4], "big")
        if at + 4 > len(data) or end > len(data):
            return None
        found.append((int.from_bytes(data[at : at + 2], "big"), data[at + 4 : end]))
        at = end
    return found


def _first(options: list[tuple[int, bytes]], code: int) -> bytes | None:
    return next((value for one, value in options if one == code), None)


def _is_duid(value: bytes) -> bool:
    kind = int.from_bytes(value[:2], "big")
    least = _DUID_LENGTHS.get(kind, 2)
    return len(value) == least if kind == _DUID_UUID else len(value) >= least


def _is_association(value: bytes | None) -> bool:
    return value is None or (len(value) >= _IA_HEADER and _options(value[_IA_HEADER:]) is not None)
