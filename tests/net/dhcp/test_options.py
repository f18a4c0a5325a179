"""The options of a DHCPv4 answer."""

from __future__ import annotations

from ipaddress import IPv4Address, IPv4Network
from typing import Any

import pytest

from kvnode.net.dhcp import options
from kvnode.net.dhcp.errors import DhcpError
from kvnode.net.dhcp.options import Route


def build(**changes: Any) -> dict[int, bytes]:
    """The options of an interface with these changes."""
    given: dict[str, Any] = {
        "mask": IPv4Address("255.255.255.0"),
        "router": IPv4Address("10.0.2.1"),
        "nameservers": [IPv4Address("10.0.0.10")],
        "routes": [],
        "search": ["cluster.local"],
        "mtu": 1450,
        "hostname": "pod",
        "custom": None,
    }
    return options.build(**(given | changes))


def test_what_is_not_known_is_left_out() -> None:
    found = build(mask=None, router=None, search=[])
    assert set(found) == {options.NAME_SERVERS, options.MTU, options.HOST_NAME}


def test_the_jumbo_mtu_of_the_pod_reaches_the_guest() -> None:
    assert build(mtu=8901)[options.MTU] == (8901).to_bytes(2, "big")


def test_the_default_route_comes_last_whatever_the_order() -> None:
    link, gateway = IPv4Network("169.254.1.1/32"), IPv4Address("169.254.1.1")
    encoded = options.classless_routes([Route(None, gateway), Route(link, None)])
    assert encoded.hex() == "20a9fe010100000000" + "00a9fe0101"


@pytest.mark.parametrize(
    ("network", "expected"),
    [("10.0.0.0/8", "080a"), ("172.16.0.0/12", "0cac10"), ("10.1.128.0/17", "110a0180"), ("0.0.0.0/0", "00")],
)
def test_only_significant_bytes_of_a_network_are_sent(network: str, expected: str) -> None:
    route = Route(IPv4Network(network), IPv4Address("1.2.3.4"))
    assert options.classless_routes([route]).hex() == expected + "01020304"


@pytest.mark.parametrize(
    "domain", ["-foo.com", "foo.com-", "a" * 64 + ".com", "foo\n.com", "foo,com", "Foo.com", "b.com\n"]
)
def test_what_is_no_domain_is_named(domain: str) -> None:
    with pytest.raises(DhcpError, match="is no domain name"):
        options.search_list([domain])


def test_labels_of_63_characters_and_a_final_dot_are_domains() -> None:
    assert options.search_list(["a" * 63 + ".com"])[0] == 63
    assert options.search_list(["local."]) == b"\x05local\0\0"


def test_search_domains_must_fit_an_option() -> None:
    fitting = ["a" * 50 + ".example"] * 4
    assert len(options.search_list(fitting)) == 4 * 60
    with pytest.raises(DhcpError, match="take 300 bytes"):
        options.search_list([*fitting, fitting[0]])


def test_private_options_outside_their_range_are_passed_over() -> None:
    private = [{"option": code, "value": str(code)} for code in (1, 223, 224, 254, 255, 256)]
    found = build(custom={"privateOptions": private})
    assert {code: value for code, value in found.items() if code > 200} == {224: b"224", 254: b"254"}
    assert found[options.SUBNET_MASK] == bytes((255, 255, 255, 0))


def test_half_a_character_is_no_crash() -> None:
    assert build(custom={"bootFileName": "a\ud800"})[options.BOOT_FILE] == b"a?"


@pytest.mark.parametrize("server", ["ntp.example", "fd00::1", "1.2.3", ""])
def test_a_time_server_must_be_an_ipv4_address(server: str) -> None:
    with pytest.raises(DhcpError, match=r"dhcpOptions.ntpServers\[1\]"):
        build(custom={"ntpServers": ["10.0.0.1", server]})
