"""Links and addresses, asked of the kernel."""

from __future__ import annotations

import sys
from ipaddress import ip_address

import pytest

from kvnode.net import links
from tests.net.namespaces import Namespace


def test_the_loopback_of_any_machine() -> None:
    link = links.find("lo")
    assert link is not None
    assert (link.index, link.mac_text, link.mtu) == (1, "00:00:00:00:00:00", 65536)
    assert not any(links.is_global_unicast(address) for address in links.addresses(link))


def test_what_is_not_there() -> None:
    assert links.find("no such link") is None


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("10.0.0.1", True),
        ("192.0.2.2", True),
        ("fd00::1", True),
        ("2001:db8::1", True),
        ("127.0.0.1", False),
        ("169.254.1.1", False),
        ("224.0.0.1", False),
        ("0.0.0.0", False),  # noqa: S104
        ("255.255.255.255", False),
        ("::1", False),
        ("fe80::1", False),
        ("ff02::1", False),
    ],
)
def test_global_addresses(text: str, expected: bool) -> None:
    assert links.is_global_unicast(ip_address(text)) is expected


@pytest.mark.integration
def test_many_links_and_their_addresses() -> None:
    script = (
        "from kvnode.net import links\n"
        "for name in ('b0', 'b199'):\n"
        "    link = links.find(name)\n"
        "    found = sorted(str(one) for one in links.addresses(link) if links.is_global_unicast(one))\n"
        "    print(name, link.mac_text, link.mtu, *found)\n"
    )
    batch = "\n".join(f"link add b{number} mtu 1400 type bridge" for number in range(200))
    with Namespace() as space:
        space.run("sh", "-c", f"echo '{batch}' | ip -batch -")
        space.run("ip", "link", "set", "b199", "address", "02:00:00:00:00:05")
        space.run("ip", "link", "set", "b199", "mtu", "1300")
        space.run("ip", "addr", "add", "10.1.2.3/24", "dev", "b199")
        space.run("ip", "addr", "add", "fd00::7/64", "dev", "b199")
        first, last = space.run(sys.executable, "-c", script).splitlines()
    assert first.endswith(" 1400")
    assert last == "b199 02:00:00:00:00:05 1300 10.1.2.3 fd00::7"
