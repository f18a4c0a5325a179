"""``virt-probe``: a readiness or liveness probe that asks the guest (``cmd/virt-probe/virt-probe.go``).

``--command C -- ARGUMENT...`` runs a command in the guest, prints what it printed and ends with its code;
``--guestAgentPing`` asks the guest agent for a sign of life.
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Sequence
from pathlib import Path

from kvnode.launcher.programs.flags import Flag, FlagError, Parsed, parse, switch, whole
from kvnode.rpc.cmd import CmdClient
from kvnode.rpc.errors import RpcError, VersionError

#: The launcher's socket, in its container.
SOCKET = "/var/run/kubevirt/sockets/launcher-sock"

_FLAGS = {
    "socket": Flag(SOCKET),
    "domainName": Flag(""),
    "command": Flag(""),
    "timeoutSeconds": Flag(1, whole),
    "guestAgentPing": switch(),
    "memProfile": Flag(""),
}


def main(argv: Sequence[str] | None = None) -> int:
    """Probe; 0 when the guest is well."""
    try:
        options = parse(_FLAGS, sys.argv[1:] if argv is None else argv)
    except FlagError as error:
        sys.stderr.write(f"virt-probe: {error}\n")
        return 2
    try:
        return asyncio.run(_probe(options))
    except (RpcError, VersionError, ValueError) as error:
        sys.stderr.write(f"virt-probe: {error}\n")
        return 1


async def _probe(options: Parsed) -> int:
    client = await CmdClient.open(Path(options["socket"]))
    try:
        seconds = max(0, options["timeoutSeconds"])
        if options["guestAgentPing"]:
            await client.guest_ping(options["domainName"], seconds)
            return 0
        code, output = await client.execute(
            options["domainName"], options["command"], options.arguments, seconds
        )
    finally:
        await client.close()
    if output:
        sys.stdout.write(output + "\n")
    return code & 0xFF if code & 0xFF or not code else 1
