"""Serves DHCP by a configuration in JSON on the command line, until its standard input ends."""

from __future__ import annotations

import asyncio
import json
import sys
from ipaddress import IPv4Address, IPv4Interface, IPv4Network, IPv6Interface
from pathlib import Path
from typing import Any

from kvnode.net.dhcp.config import DhcpConfig
from kvnode.net.dhcp.options import Route
from kvnode.net.dhcp.service import DhcpService


def config_of(given: dict[str, Any]) -> DhcpConfig:
    """The configuration that the test describes."""
    return DhcpConfig(
        name=given["name"],
        ip=IPv4Interface(given["ip"]) if "ip" in given else None,
        ipv6=IPv6Interface(given["ipv6"]) if "ipv6" in given else None,
        mac=bytes.fromhex(given.get("mac", "")),
        server_ip=IPv4Address(given["gateway"]) if "gateway" in given else None,
        gateway=IPv4Address(given["gateway"]) if "gateway" in given else None,
        routes=tuple(Route(IPv4Network(dst), IPv4Address(via)) for dst, via in given.get("routes", [])),
        mtu=1400,
    )


async def main() -> None:
    """Start the servers, say so, and wait."""
    directory = Path(sys.argv[1])
    service = DhcpService(directory, directory / "resolv.conf")
    for given in json.loads(sys.argv[2]):
        await service.ensure(given["interface"], config_of(given), given.get("options"))
    print("serving", *sorted(mark.name for mark in directory.glob("dhcp_started-*")), flush=True)
    await asyncio.to_thread(sys.stdin.read)
    service.close()
    print("ended", *(mark.name for mark in directory.glob("dhcp_started-*")), flush=True)


asyncio.run(main())
