"""GetVMStats: only what a request names (``pkg/virt-launcher/virtwrap/cmd-server/vmstats.go``)."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

from kvnode.launcher.server.answers import failure, success
from kvnode.launcher.server.domain_manager import DomainManager
from kvnode.rpc.cmd_v1_pb2 import DirtyRateStatsResponse, DomainStatsResponse, Response, VMStatsResponse

#: Field of request and answer to the command that the guest agent is asked, in the order of asking.
AGENT_COMMANDS = {
    "guestGetLoad": "guest-get-load",
    "guestGetCpuStats": "guest-get-cpustats",
    "guestGetDiskStats": "guest-get-diskstats",
    "guestGetTime": "guest-get-time",
    "guestGetVcpus": "guest-get-vcpus",
    "guestGetMemoryBlockInfo": "guest-get-memory-block-info",
    "guestGetUsers": "guest-get-users",
    "guestGetOsInfo": "guest-get-osinfo",
    "guestGetDisks": "guest-get-disks",
    "guestGetHostName": "guest-get-host-name",
    "guestGetTimezone": "guest-get-timezone",
    "guestNetworkGetRoute": "guest-network-get-route",
    "guestNetworkGetInterfaces": "guest-network-get-interfaces",
    "guestGetMemoryBlocks": "guest-get-memory-blocks",
}


async def vm_stats(
    request: Any,
    manager: DomainManager,
    *,
    domain_stats: Callable[[], Awaitable[DomainStatsResponse]],
    dirty_rate: Callable[[], Awaitable[DirtyRateStatsResponse]],
) -> VMStatsResponse:
    """Gather what the request names. One part that fails does not keep the others back: the answer says no,
    names each that failed, and carries the rest.
    """
    answer = VMStatsResponse(response=success())
    failed: list[str] = []
    if request.HasField("domainStats"):
        answer.domainStats.CopyFrom(await domain_stats())
        _note(failed, "domain stats", answer.domainStats.response)
    if request.HasField("dirtyRate"):
        answer.dirtyRateStats.CopyFrom(await dirty_rate())
        _note(failed, "dirty rate stats", answer.dirtyRateStats.response)
    named = [field for field in AGENT_COMMANDS if request.HasField(field)]
    if named:
        answer.guestAgentVersion.CopyFrom(success(await manager.guest_agent_version()))
    for field in named:
        command = AGENT_COMMANDS[field]
        told = await _agent_data(manager, command)
        getattr(answer, field).CopyFrom(told)
        _note(failed, f"agent data {command}", told)
    if failed:
        answer.response.CopyFrom(Response(success=False, message="; ".join(failed)))
    return answer


async def _agent_data(manager: DomainManager, command: str) -> Response:
    try:
        return success(await manager.agent_data(command))
    except Exception as error:
        return failure(command, error)


def _note(failed: list[str], what: str, response: Response) -> None:
    if not response.success:
        failed.append(f"{what}: {response.message}")
