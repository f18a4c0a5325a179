"""Starting servers: what keeps one from starting, and that nothing is left then."""

from __future__ import annotations

import asyncio
from ipaddress import IPv4Address, IPv4Interface
from pathlib import Path

import pytest

from kvnode.net import links
from kvnode.net.dhcp import service as service_module
from kvnode.net.dhcp.config import DhcpConfig
from kvnode.net.dhcp.errors import DhcpError
from kvnode.net.dhcp.service import DhcpService
from kvnode.net.links import Link

CONFIG = DhcpConfig(name="eth0", ip=IPv4Interface("10.0.2.2/24"), server_ip=IPv4Address("10.0.2.1"))


def start(directory: Path, config: DhcpConfig, custom: dict[str, object] | None = None) -> None:
    """Start an interface's servers, and end them."""

    async def run() -> None:
        service = DhcpService(directory, directory / "resolv.conf")
        try:
            await service.ensure("no-such-link", config, custom)
        finally:
            service.close()

    asyncio.run(run())


def test_an_interface_without_addresses_needs_no_server(tmp_path: Path) -> None:
    start(tmp_path, DhcpConfig(ipam_disabled=True))
    assert list(tmp_path.iterdir()) == []


def test_a_missing_resolv_conf_is_named(tmp_path: Path) -> None:
    with pytest.raises(DhcpError, match=r"resolv\.conf: No such file"):
        start(tmp_path, CONFIG)


def test_bad_options_are_told_before_a_socket_is_opened(tmp_path: Path) -> None:
    (tmp_path / "resolv.conf").write_text("search not,a,domain\n")
    with pytest.raises(DhcpError, match="'not,a,domain' is no domain name"):
        start(tmp_path, CONFIG)


def test_a_link_that_is_not_there_leaves_no_mark(tmp_path: Path) -> None:
    (tmp_path / "resolv.conf").write_text("")
    with pytest.raises(DhcpError, match=r"no DHCP server on no-such-link: (No such device|not permitted)"):
        start(tmp_path, CONFIG)
    assert not list(tmp_path.glob("dhcp_started-*"))


class Transport:
    """A server's socket."""

    closed = False

    def close(self) -> None:
        """Note it."""
        self.closed = True


def test_a_link_that_came_back_is_served_anew(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A socket stays bound to the link that was there when it was opened, and hears nothing of its successor."""
    (tmp_path / "resolv.conf").write_text("")
    opened: list[Transport] = []

    async def serve4(_interface: str, _answer: object) -> Transport:
        opened.append(Transport())
        return opened[-1]

    async def run() -> None:
        service = DhcpService(tmp_path, tmp_path / "resolv.conf")
        for index in (3, 3, 8, 8):
            monkeypatch.setattr(links, "find", lambda name, index=index: Link(index, name, bytes(6), 1500))
            await service.ensure("k6t-eth0", CONFIG, None)
        assert [one.closed for one in opened] == [True, False]
        service.close()
        assert opened[1].closed
        assert not list(tmp_path.glob("dhcp_started-*"))

    monkeypatch.setattr(service_module, "serve4", serve4)
    asyncio.run(run())
