"""Runs the launcher's half of a pod's network with the VMI, attachments and domain on its standard input."""

from __future__ import annotations

import asyncio
import json
import sys
import xml.etree.ElementTree as ET
from pathlib import Path

from kvnode.launcher.errors import LauncherError
from kvnode.launcher.network import PodNetwork
from kvnode.net.dhcp.service import DhcpService


async def main() -> None:
    """Print the domain that came of it; serve until the standard input ends."""
    directory = Path(sys.argv[1])
    given = json.loads(sys.stdin.readline())
    service = DhcpService(directory, directory / "resolv.conf")
    network = PodNetwork(service, directory)
    try:
        domain = ET.fromstring(given["domain"])
        for _ in range(2):  # a second pass starts nothing anew
            await network.plug(given["vmi"], domain, given["attachments"], given["networks"])
        answer = ET.tostring(domain, encoding="unicode")
    except LauncherError as error:
        answer = f"error: {error}"
    print(json.dumps(answer), flush=True)
    await asyncio.to_thread(sys.stdin.read)
    service.close()


asyncio.run(main())
