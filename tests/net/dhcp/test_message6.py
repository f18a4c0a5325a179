"""DHCPv6 messages."""

from __future__ import annotations

from ipaddress import IPv6Address

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kvnode.net.dhcp import message6

CLIENT_ID = "0001000a00030001020000000077"
IA = "0003000cdeadbeef0000000000000000"
RAPID = "000e0000"


def answer(data: bytes | str) -> str | None:
    """The server's answer, in hex."""
    given = bytes.fromhex(data) if isinstance(data, str) else data
    found = message6.answer(given, client=IPv6Address("fd10:0:2::2"), server_mac=bytes(6), nameservers=[])
    return None if found is None else found.hex()


@pytest.mark.parametrize(
    ("kind", "more", "reply"),
    [
        (1, "", "02"),
        (1, RAPID, "07"),
        (3, RAPID, "07"),
        *((kind, "", "07") for kind in (3, 4, 5, 6, 8, 11)),
        *((kind, "", None) for kind in (0, 2, 7, 9, 10, 12, 13, 200)),
    ],
)
def test_kinds(kind: int, more: str, reply: str | None) -> None:
    found = answer(f"{kind:02x}aabbcc{CLIENT_ID}{IA}{more}")
    assert (found and found[:8]) == (reply and f"{reply}aabbcc")
    if found is not None:
        assert (RAPID in found) == (kind == 1 and more == RAPID)


def test_an_answer_in_full() -> None:
    lease = "05250a80"
    address = f"00050018fd100000000200000000000000000002{lease}{lease}"
    identity = f"00030028deadbeef0000000000000000{address}"
    server = "0002000a00030001000000000000"
    assert answer(f"01aabbcc{CLIENT_ID}{IA}") == f"02aabbcc{CLIENT_ID}{identity}{server}"


@pytest.mark.parametrize(
    "tail",
    [
        "",
        IA,
        CLIENT_ID + "00",
        CLIENT_ID + "0003000cdead",
        CLIENT_ID + "00030004deadbeef",
        CLIENT_ID + IA[:4] + "000f" + IA[8:] + "0005ff",
        "0001000100",
        "0001000400010000",
        "00010004000400ff",
    ],
    ids=[
        "nothing",
        "no client",
        "a byte over",
        "cut off",
        "short IA",
        "bad IA",
        "short id",
        "short LLT",
        "short UUID",
    ],
)
def test_malformed_messages_get_no_answer(tail: str) -> None:
    assert answer("01aabbcc" + tail) is None


@given(st.binary(max_size=120))
def test_any_bytes_can_be_read(data: bytes) -> None:
    answer(data)
    answer(bytes.fromhex("01aabbcc" + CLIENT_ID) + data)
