"""Runs the launcher's half of a pod's network with the VMI, attachments and domain on its standard input."""

from __future__ import annotations

import asyncio
import json
import sys
from pathlib import Path

from kvnode.launcher import network, paths
from kvnode.launcher.errors import LauncherError
from kvnode.net.dhcp.service import DhcpService


async def main() -> None:
    """Print the domain that came of it; serve until the standard input ends."""
    directory = Path(sys.argv[1])
    paths.PRIVATE = directory
    given = json.loads(sys.stdin.readline())
    service = DhcpService(directory, directory / "resolv.conf")
    try:
        for _ in range(2):  # a second pass starts nothing anew
            domain = await network.set_up(given["vmi"], given["domain"], given["attachments"], service)
    except LauncherError as error:
        domain = f"error: {error}"
    print(json.dumps(domain), flush=True)
    await asyncio.to_thread(sys.stdin.read)
    service.close()


asyncio.run(main())
