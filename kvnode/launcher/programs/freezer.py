"""``virt-freezer``: freezes or thaws the guest's file systems around a backup of its volumes
(``cmd/virt-freezer/virt-freezer.go``).

A guest without an agent, and one that does not run, need neither: that is success.
"""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from kvnode.launcher.programs.flags import Flag, FlagError, Parsed, parse, switch, whole
from kvnode.rpc.cmd import CmdClient
from kvnode.rpc.errors import RpcError, VersionError

SOCKET = "/run/kubevirt/sockets/launcher-sock"

_FLAGS = {
    "freeze": switch(),
    "unfreeze": switch(),
    "name": Flag(""),
    "namespace": Flag(""),
    "unfreezeTimeoutSeconds": Flag(300, whole),
    "socket": Flag(SOCKET),
}
# In what libvirt says when the agent went away in the midst of it, and when Windows refuses to go on.
_AGENT_AWAY = "Guest agent not available for now"
_VSS_LIMIT = "fsfreeze is limited"


def main(argv: Sequence[str] | None = None) -> int:
    """Freeze or thaw; 0 when that succeeded or was not needed."""
    try:
        options = parse(_FLAGS, sys.argv[1:] if argv is None else argv)
    except FlagError as error:
        return _fail(str(error))
    if options["freeze"] == options["unfreeze"]:
        return _fail("give one of --freeze and --unfreeze")
    if not options["name"] or not options["namespace"]:
        return _fail("give both --name and --namespace")
    try:
        return asyncio.run(_run(options))
    except (RpcError, VersionError, ValueError) as error:
        return _fail(str(error))


async def _run(options: Parsed) -> int:
    client = await CmdClient.open(Path(options["socket"]))
    try:
        info = _object(await client.guest_info())
        if not info.get("guestAgentVersion"):
            _say("the guest has no agent: nothing to do")
            return 0
        if not await _is_running(client):
            _say("the guest does not run: nothing to do")
            return 0
        vmi = json.dumps({"metadata": {"name": options["name"], "namespace": options["namespace"]}}).encode()
        if options["unfreeze"]:
            return await _thaw(client, vmi)
        return await _freeze(client, vmi, options["unfreezeTimeoutSeconds"], info)
    finally:
        await client.close()


async def _freeze(client: CmdClient, vmi: bytes, seconds: int, info: dict[str, Any]) -> int:
    try:
        await client.freeze(vmi, seconds)
    except RpcError as error:
        if _AGENT_AWAY not in error.message:
            return _fail(f"the guest's file systems do not freeze: {error}")
        await _thaw(client, vmi)
        needed = "its agent and VSS run" if "windows" in str(info.get("os")).lower() else "its agent runs"
        return _fail(f"the guest's file systems do not freeze; make sure that {needed}: {error}")
    return 0


async def _thaw(client: CmdClient, vmi: bytes) -> int:
    try:
        await client.vmi_command("UnfreezeVirtualMachine", vmi)
    except RpcError as error:
        hint = "; if it stays so, stop the VM and back it up then" if _VSS_LIMIT in error.message else ""
        return _fail(f"the guest's file systems do not thaw: {error}{hint}")
    return 0


async def _is_running(client: CmdClient) -> bool:
    domain = await client.domain()
    status = _object(domain or "").get("Status")
    return isinstance(status, dict) and status.get("Status") == "Running"


def _object(text: str) -> dict[str, Any]:
    """A JSON object; an empty one for nothing and for JSON that is something else."""
    if not text:
        return {}
    value = json.loads(text)
    return value if isinstance(value, dict) else {}


def _say(text: str) -> None:
    sys.stderr.write(f"virt-freezer: {text}\n")


def _fail(text: str) -> int:
    _say(text)
    return 1
