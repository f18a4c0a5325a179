"""What a server tells the guest, by the interface's binding."""

from __future__ import annotations

import base64
import json
from ipaddress import IPv4Address, IPv4Interface, IPv4Network, IPv6Interface
from typing import Any

import pytest

from kvnode.net.dhcp import config
from kvnode.net.dhcp.config import DhcpConfig
from kvnode.net.dhcp.errors import DhcpError
from kvnode.net.dhcp.options import Route


def cached(**changes: Any) -> bytes:
    """An agent's file about an interface."""
    content = {
        "IP": {"IP": "10.244.0.5", "Mask": base64.b64encode(bytes((255, 255, 255, 0))).decode(), "Label": ""},
        "MAC": base64.b64encode(bytes((2, 0, 0, 0, 0, 0x88))).decode(),
        "Gateway": "10.244.0.1",
        "Routes": [
            {"Dst": None, "Gw": "10.244.0.1"},
            {
                "Dst": {"IP": "10.244.0.0", "Mask": base64.b64encode(bytes((255, 255, 0, 0))).decode()},
                "Gw": "",
            },
        ],
        "IPAMDisabled": False,
    }
    return json.dumps(content | changes).encode()


def bridge(cache: bytes) -> DhcpConfig:
    """The configuration of the VMI's second interface."""
    return config.bridge(cache, name="eth0", position=1, mtu=1450, subdomain="sub")


def masquerade(pod: dict[str, Any], *, ipv4: bool = True, ipv6: bool = False) -> DhcpConfig:
    """The configuration of a masquerade interface."""
    network = {"name": "default", "pod": pod}
    return config.masquerade(network, name="eth0", mtu=1450, subdomain="", ipv4=ipv4, ipv6=ipv6)


def test_a_bridge_hands_on_what_the_agent_took() -> None:
    assert bridge(cached()) == DhcpConfig(
        name="eth0",
        ip=IPv4Interface("10.244.0.5/24"),
        mac=bytes((2, 0, 0, 0, 0, 0x88)),
        server_ip=IPv4Address("169.254.75.11"),
        gateway=IPv4Address("10.244.0.1"),
        routes=(Route(None, IPv4Address("10.244.0.1")), Route(IPv4Network("10.244.0.0/16"), None)),
        mtu=1450,
        subdomain="sub",
    )


def test_a_bridge_without_addresses_has_no_server() -> None:
    assert bridge(cached(IP={"Label": ""}, IPAMDisabled=True)) == DhcpConfig(ipam_disabled=True)


def test_absent_routes_and_gateway() -> None:
    found = bridge(cached(Routes=None, Gateway=""))
    assert (found.routes, found.gateway) == (None, None)


@pytest.mark.parametrize(
    "cache",
    [
        b"",
        b"{",
        b"[]",
        b"{}",
        cached(IP={"IP": "10.0.0.1", "Mask": "AQ=="}),
        cached(IP={"IP": "x", "Mask": "////AA=="}),
        cached(MAC="!"),
        cached(Gateway="fd00::1"),
        cached(Routes=[{"Dst": {}}]),
        cached(Routes=[None]),
    ],
)
def test_a_file_that_no_agent_wrote_is_named(cache: bytes) -> None:
    with pytest.raises(DhcpError, match=r"vif-cache-eth0\.json: not an interface's addresses"):
        bridge(cache)


def test_a_masqueraded_guest_is_the_second_of_its_network_and_the_pod_the_first() -> None:
    found = masquerade({}, ipv6=True)
    assert (found.ip, found.gateway) == (IPv4Interface("10.0.2.2/24"), IPv4Address("10.0.2.1"))
    assert (found.ipv6, str(found.server_ipv6)) == (IPv6Interface("fd10:0:2::2/120"), "fd10:0:2::1")
    assert found.mac == b"", "nobody else is on its bridge"


def test_networks_of_the_users() -> None:
    found = masquerade({"vmNetworkCIDR": "192.168.100.3/30", "vmIPv6NetworkCIDR": "fd00:1::/126"}, ipv6=True)
    assert (str(found.ip), str(found.ipv6)) == ("192.168.100.2/30", "fd00:1::2/126")


def test_only_families_that_the_pod_has() -> None:
    assert masquerade({}, ipv4=False).ip is None
    assert masquerade({}, ipv4=True).ipv6 is None


@pytest.mark.parametrize(
    ("pod", "complaint"),
    [
        ({"vmNetworkCIDR": "192.168.100.0/31"}, r"pod\.vmNetworkCIDR: .* at least four addresses"),
        ({"vmNetworkCIDR": "10.0.0.0"}, r"pod\.vmNetworkCIDR"),
        ({"vmNetworkCIDR": "x/24"}, r"pod\.vmNetworkCIDR: 'x/24' is no network"),
        ({"vmNetworkCIDR": "fd00::/64"}, r"pod\.vmNetworkCIDR: .* is not IPv4"),
        ({"vmIPv6NetworkCIDR": "10.0.0.0/24"}, r"pod\.vmIPv6NetworkCIDR: .* is not IPv6"),
    ],
)
def test_networks_that_do_not_do_are_named(pod: dict[str, str], complaint: str) -> None:
    with pytest.raises(DhcpError, match=complaint):
        masquerade(pod, ipv6=True)
