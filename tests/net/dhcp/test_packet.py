"""DHCPv4 packets."""

from __future__ import annotations

from ipaddress import IPv4Address

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kvnode.net.dhcp import packet

MAC = bytes((2, 0, 0, 0, 0, 0x77))


def request(kind: int, mac: bytes = MAC, flags: bytes = b"\0\0") -> bytes:
    """A client's packet."""
    head = (
        bytes((1, 1, len(mac), 0)) + b"\x01\x02\x03\x04" + bytes(2) + flags + bytes(12) + bytes((9, 9, 9, 9))
    )
    return head + mac.ljust(16, b"\0") + bytes(192) + bytes((99, 130, 83, 99, 0, 0, 53, 1, kind, 255))


def answer(data: bytes, mac: bytes = MAC, options: dict[int, bytes] | None = None) -> bytes | None:
    """The answer of a server that serves ``mac``."""
    found = packet.parse(data)
    assert found is not None
    server, client = IPv4Address("10.0.2.1"), IPv4Address("10.0.2.2")
    return packet.answer(found, server=server, client=client, client_mac=mac, options=options or {})


@pytest.mark.parametrize(("kind", "reply"), [(1, 2), (3, 5), (4, None), (7, None), (8, None)])
def test_kinds(kind: int, reply: int | None) -> None:
    data = answer(request(kind))
    assert (data[242] if data is not None else None) == reply


def test_an_answer_repeats_what_the_client_sent() -> None:
    data = answer(request(packet.DISCOVER, flags=b"\x80\x00"))
    assert data is not None
    assert data[:12] == bytes((2, 1, 6, 0)) + b"\x01\x02\x03\x04" + b"\0\0\x80\0"
    assert data[12:28] == bytes(4) + bytes((10, 0, 2, 2)) + bytes(4) + bytes((9, 9, 9, 9))
    assert data[28:44] == MAC.ljust(16, b"\0")
    assert len(data) == 272, "BOOTP's least size"


def test_only_the_guest_is_answered_unless_anyone_is_the_guest() -> None:
    stranger = bytes((2, 0, 0, 0, 0, 0x99))
    assert answer(request(packet.DISCOVER, mac=stranger)) is None
    assert answer(request(packet.DISCOVER, mac=MAC[:5])) is None
    assert answer(request(packet.DISCOVER, mac=stranger), mac=b"") is not None


def test_a_long_option_is_split() -> None:
    data = answer(request(packet.DISCOVER), options={224: bytes(range(250)) * 2, 6: b""})
    assert data is not None
    rest = data[240 + 3 + 6 + 6 :]
    assert rest[:2] == bytes((6, 0))
    assert rest[2:4] == bytes((224, 255))
    assert rest[4 + 255 : 4 + 257] == bytes((224, 245))
    assert rest[4 + 257 + 245] == 255


@pytest.mark.parametrize(
    "data",
    [
        b"",
        request(1)[:239],
        b"\x02" + request(1)[1:],
        request(1)[:236] + b"none" + request(1)[240:],
        request(0),
        request(9),
        request(1)[:2] + b"\x11" + request(1)[3:],
        request(1)[:-2],
    ],
    ids=["empty", "short", "a server's", "no cookie", "kind 0", "kind 9", "long address", "cut off"],
)
def test_what_is_no_request(data: bytes) -> None:
    assert packet.parse(data) is None


@given(st.binary(max_size=80), st.integers(0, 255))
def test_any_options_can_be_read(tail: bytes, kind: int) -> None:
    found = packet.parse(request(kind)[:240] + tail)
    assert found is None or found.kind in range(1, 9)


@given(st.binary(max_size=400))
def test_any_bytes_can_be_read(data: bytes) -> None:
    packet.parse(data)
