"""The DHCP servers of a pod: started once an interface, for as long as the launcher lives."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from kvnode.net import links
from kvnode.net.dhcp import message6, options, packet, resolvconf
from kvnode.net.dhcp.config import DhcpConfig
from kvnode.net.dhcp.errors import DhcpError
from kvnode.net.dhcp.server import Answer4, serve4, serve6

RESOLV_CONF = Path("/etc/resolv.conf")


class DhcpService:
    """Every server of this pod; used in one event loop."""

    def __init__(self, directory: Path, resolv_conf: Path = RESOLV_CONF) -> None:
        """``directory`` takes the mark ``dhcp_started-<interface>`` of each interface with a server."""
        self._directory = directory
        self._resolv_conf = resolv_conf
        # With the number of the link that each is bound to.
        self._servers: dict[str, tuple[int, list[asyncio.DatagramTransport]]] = {}

    async def ensure(self, interface: str, config: DhcpConfig, custom: Mapping[str, Any] | None) -> None:
        """Start the servers that ``config`` asks for on ``interface``, unless they run; raises DhcpError.

        Those on a link that went and came back (an interface that was pulled out and plugged in again) hear
        nothing any more and are started anew.
        ``custom`` is the interface's ``dhcpOptions``. The mark is for others to see
        (``pkg/network/dhcp/configurator.go:88``): one that an earlier launcher left starts no server, so it
        does not keep ours from starting.
        """
        if config.ipam_disabled or self._is_served(interface, config.name):
            return
        try:
            found = resolvconf.parse(self._resolv_conf.read_text(encoding="utf-8", errors="replace"))
        except OSError as error:
            raise DhcpError(f"{self._resolv_conf}: {error.strerror}") from None
        servers: list[asyncio.DatagramTransport] = []
        try:
            if config.ip is not None:
                servers.append(await serve4(interface, answer4(config, found, custom)))
            if config.ipv6 is not None:
                servers.append(await self._start6(interface, config, found))
            (self._directory / f"dhcp_started-{config.name}").touch()
        except (DhcpError, OSError) as error:
            for server in servers:
                server.close()
            if isinstance(error, OSError):
                raise DhcpError(f"{self._directory}/dhcp_started-{config.name}: {error.strerror}") from None
            raise
        self._servers[config.name] = (_index(interface), servers)

    def _is_served(self, interface: str, name: str) -> bool:
        """Whether an interface's servers run; those that are bound to a link that is gone are ended."""
        index, servers = self._servers.get(name, (0, []))
        if servers and index != _index(interface):
            for server in servers:
                server.close()
            del self._servers[name]
        return name in self._servers

    async def _start6(
        self, interface: str, config: DhcpConfig, found: resolvconf.ResolvConf
    ) -> asyncio.DatagramTransport:
        link = links.find(interface)
        client = config.ipv6
        if link is None or client is None:
            raise DhcpError(f"no DHCPv6 server on {interface}: there is no such interface")

        def reply(data: bytes) -> bytes | None:
            return message6.answer(data, client=client.ip, server_mac=link.mac, nameservers=found.ipv6)

        return await serve6(interface, reply)

    def close(self) -> None:
        """End every server; the marks go too."""
        for name, (_, servers) in self._servers.items():
            for server in servers:
                server.close()
            (self._directory / f"dhcp_started-{name}").unlink(missing_ok=True)
        self._servers.clear()


def _index(interface: str) -> int:
    link = links.find(interface)
    return 0 if link is None else link.index


def answer4(
    config: DhcpConfig,
    found: resolvconf.ResolvConf,
    custom: Mapping[str, Any] | None,
    hostname: str | None = None,
) -> Answer4:
    """Return the answering function of an interface's DHCPv4 server; raises DhcpError.

    ``hostname`` is the pod's when it is not given.
    """
    client, server = config.ip, config.server_ip
    if client is None or server is None:
        raise DhcpError(f"interface {config.name}: no IPv4 address to hand out")
    prepared = options.build(
        mask=client.netmask,
        router=config.gateway,
        nameservers=found.ipv4,
        routes=config.routes or (),
        search=resolvconf.with_subdomain(found.search, config.subdomain),
        mtu=config.mtu,
        hostname=socket.gethostname() if hostname is None else hostname,
        custom=custom,
    )

    def answer(data: bytes) -> tuple[bytes, bool] | None:
        request = packet.parse(data)
        if request is None:
            return None
        reply = packet.answer(
            request, server=server, client=client.ip, client_mac=config.mac, options=prepared
        )
        return None if reply is None else (reply, request.broadcast)

    return answer
