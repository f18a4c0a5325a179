"""The command service: what a node agent asks of a launcher (``kubevirt.cmd.v1``)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Self, TypeVar

from google.protobuf.message import Message

from kvnode.rpc import cmd_info_pb2, cmd_v1_pb2
from kvnode.rpc.client import CONNECT_SECONDS, Channel
from kvnode.rpc.cmd_v1_pb2 import (
    BackupRequest,
    DirtyRateStatsResponse,
    DomainResponse,
    DomainStatsResponse,
    EmptyRequest,
    ExecRequest,
    ExecResponse,
    FreezeRequest,
    GuestFilesystemsResponse,
    GuestInfoResponse,
    GuestPingRequest,
    GuestPingResponse,
    GuestUserListResponse,
    InjectLaunchSecretRequest,
    LaunchMeasurementResponse,
    MemoryDumpRequest,
    MigrationRequest,
    QemuVersionResponse,
    RedefineCheckpointRequest,
    RedefineCheckpointResponse,
    Response,
    ScreenshotResponse,
    SEVInfoResponse,
    VirtualMachineOptions,
    VMIRequest,
    VMStatsRequest,
    VMStatsResponse,
)
from kvnode.rpc.errors import RpcError
from kvnode.rpc.runtime import grpc
from kvnode.rpc.service import Handler, Service
from kvnode.rpc.versions import CMD_VERSIONS, highest_common

CMD = Service.of(cmd_v1_pb2.DESCRIPTOR, "Cmd")
CMD_INFO = Service.of(cmd_info_pb2.DESCRIPTOR, "CmdInfo")

# Seconds a call may take (``pkg/virt-handler/cmd-client/client.go:141``).
SHORT = 5.0
LONG = 20.0
#: Freezing a guest: Windows may take a minute to settle its writers.
EXTENDED = 60.0

Answer = TypeVar("Answer", bound=Message)

_NO_OPTIONS = VirtualMachineOptions()


def bind_cmd(handlers: Mapping[str, Handler]) -> tuple[grpc.GenericRpcHandler, ...]:
    """Return what a launcher's server registers: the commands, by method name, and the version handshake."""

    async def info(_request: object, _context: object) -> Message:
        return cmd_info_pb2.CmdInfoResponse(supportedCmdVersions=CMD_VERSIONS)

    return CMD_INFO.bind({"Info": info}), CMD.bind(handlers)


class CmdClient:
    """A launcher, as its node agent sees it.

    Every method raises RpcError when the call fails or the launcher says that it did not succeed. A VMI is
    given as the JSON of a VirtualMachineInstance.
    """

    def __init__(self, socket: Path, shown: Path | None = None) -> None:
        """Prepare to talk to the launcher on ``socket``, which errors call ``shown``; :meth:`open` does so."""
        self.channel = Channel(socket, shown)
        self.version = 0

    @classmethod
    async def open(cls, socket: Path, timeout: float = CONNECT_SECONDS, shown: Path | None = None) -> Self:
        """Connect to a launcher and agree on the protocol's version.

        Raises:
            RpcError: nothing answers within ``timeout`` seconds, or what answers is no launcher.
            VersionError: the launcher knows no version that this side knows.
        """
        client = cls(socket, shown)
        try:
            await client.channel.connect(timeout)
            answer = await client.channel.call(
                CMD_INFO, "Info", cmd_info_pb2.CmdInfoRequest(), cmd_info_pb2.CmdInfoResponse, SHORT
            )
            client.version = highest_common(answer.supportedCmdVersions, CMD_VERSIONS)
        except BaseException:
            await client.close()
            raise
        return client

    async def close(self) -> None:
        """Close the connection."""
        await self.channel.close()

    # ---- one call each; those about a VMI alone share vmi_command

    async def vmi_command(
        self, rpc: str, vmi: bytes, options: VirtualMachineOptions = _NO_OPTIONS, timeout: float = LONG
    ) -> None:
        """Call a method that takes a VMIRequest and gives a Response, such as ``SyncVirtualMachine``."""
        await self._call(rpc, VMIRequest(vmi={"vmiJson": vmi}, options=options), Response, timeout)

    async def sync(self, vmi: bytes, options: VirtualMachineOptions) -> None:
        """Make the domain what the VMI says: define, start, resume, plug."""
        await self.vmi_command("SyncVirtualMachine", vmi, options)

    async def freeze(self, vmi: bytes, unfreeze_seconds: int) -> None:
        """Freeze the guest's file systems, to thaw by themselves after ``unfreeze_seconds`` (0: never)."""
        request = FreezeRequest(vmi={"vmiJson": vmi}, unfreezeTimeoutSeconds=unfreeze_seconds)
        await self._call("FreezeVirtualMachine", request, Response, EXTENDED)

    async def migrate(self, vmi: bytes, options: bytes) -> None:
        """Start a migration; ``options`` is JSON under Go field names."""
        request = MigrationRequest(vmi={"vmiJson": vmi}, options=options)
        await self._call("MigrateVirtualMachine", request, Response, LONG)

    async def memory_dump(self, vmi: bytes, path: str) -> None:
        """Write the guest's memory to ``path``."""
        request = MemoryDumpRequest(vmi={"vmiJson": vmi}, dumpPath=path)
        await self._call("VirtualMachineMemoryDump", request, Response, LONG)

    async def backup(self, vmi: bytes, options: bytes) -> None:
        """Start or abort a backup; ``options`` is JSON of BackupOptions."""
        request = BackupRequest(vmi={"vmiJson": vmi}, options=options)
        await self._call("BackupVirtualMachine", request, Response, LONG)

    async def redefine_checkpoint(self, vmi: bytes, checkpoint: bytes) -> None:
        """Make a checkpoint known to libvirt again; ``checkpoint`` is JSON of BackupCheckpoint.

        The ``response`` of the RpcError says whether the checkpoint is invalid for good
        (``checkpointInvalid``).
        """
        request = RedefineCheckpointRequest(vmi={"vmiJson": vmi}, checkpoint=checkpoint)
        await self._call("RedefineCheckpoint", request, RedefineCheckpointResponse, LONG)

    async def inject_launch_secret(self, vmi: bytes, options: bytes) -> None:
        """Hand an encrypted guest its secret; ``options`` is JSON of SEVSecretOptions."""
        request = InjectLaunchSecretRequest(vmi={"vmiJson": vmi}, options=options)
        await self._call("InjectLaunchSecret", request, Response, LONG)

    async def launch_measurement(self, vmi: bytes) -> bytes:
        """JSON of SEVMeasurementInfo."""
        request = VMIRequest(vmi={"vmiJson": vmi}, options=_NO_OPTIONS)
        return (
            await self._call("GetLaunchMeasurement", request, LaunchMeasurementResponse, SHORT)
        ).launchMeasurement

    async def screenshot(self, vmi: bytes) -> ScreenshotResponse:
        """What the guest's screen shows: ``mime`` and ``data``."""
        request = VMIRequest(vmi={"vmiJson": vmi}, options=_NO_OPTIONS)
        return await self._call("GetScreenshot", request, ScreenshotResponse, SHORT)

    # ---- about the domain

    async def ping(self) -> None:
        """Ask for a sign of life."""
        await self._call("Ping", EmptyRequest(), Response, SHORT)

    async def domain(self) -> str | None:
        """JSON of the domain under Go field names; None when there is none."""
        return (await self._call("GetDomain", EmptyRequest(), DomainResponse, SHORT)).domain or None

    async def domain_stats(self) -> str | None:
        """JSON of the domain's statistics; None when there is no domain."""
        answer = await self._call("GetDomainStats", EmptyRequest(), DomainStatsResponse, SHORT)
        return answer.domainStats or None

    async def dirty_rate(self) -> int:
        """How fast the guest dirties its memory, in MB a second; measured for a second."""
        answer = await self._call("GetDomainDirtyRateStats", EmptyRequest(), DirtyRateStatsResponse, LONG)
        return answer.dirtyRateMbs

    async def vm_stats(self, request: VMStatsRequest) -> VMStatsResponse:
        """The statistics that are set in ``request``."""
        return await self._call("GetVMStats", request, VMStatsResponse, SHORT)

    async def guest_info(self) -> str:
        """JSON of VirtualMachineInstanceGuestAgentInfo; "" when the launcher has none."""
        return (await self._call("GetGuestInfo", EmptyRequest(), GuestInfoResponse, SHORT)).guestInfoResponse

    async def users(self) -> str:
        """A JSON list of the users logged in; "" when the launcher has none."""
        answer = await self._call("GetUsers", EmptyRequest(), GuestUserListResponse, SHORT)
        return answer.guestUserListResponse

    async def filesystems(self) -> str:
        """A JSON list of the guest's file systems; "" when the launcher has none."""
        answer = await self._call("GetFilesystems", EmptyRequest(), GuestFilesystemsResponse, SHORT)
        return answer.guestFilesystemsResponse

    async def qemu_version(self) -> str:
        """QEMU's version, such as ``7.2.22``; RpcError too when the launcher gives none."""
        answer = await self._call("GetQemuVersion", EmptyRequest(), QemuVersionResponse, SHORT)
        if not answer.version:
            raise RpcError("GetQemuVersion", "the launcher gave no version", response=answer)
        return answer.version

    async def sev_info(self) -> bytes:
        """JSON of SEVPlatformInfo."""
        return (await self._call("GetSEVInfo", EmptyRequest(), SEVInfoResponse, SHORT)).sevInfo

    async def execute(
        self, domain: str, command: str, arguments: Sequence[str], seconds: int
    ) -> tuple[int, str]:
        """Run a command in the guest: its exit code and what it printed."""
        request = ExecRequest(domainName=domain, Command=command, Args=arguments, timeoutSeconds=seconds)
        answer = await self._answer("Exec", request, ExecResponse, seconds + SHORT)
        return answer.exitCode, answer.stdOut

    async def guest_ping(self, domain: str, seconds: int) -> None:
        """Ask the guest's agent for a sign of life."""
        request = GuestPingRequest(domainName=domain, timeoutSeconds=seconds)
        await self._answer("GuestPing", request, GuestPingResponse, seconds + SHORT)

    # ----

    async def _answer(self, rpc: str, request: Message, answer: type[Answer], timeout: float) -> Answer:
        return await self.channel.call(CMD, rpc, request, answer, timeout)

    async def _call(self, rpc: str, request: Message, answer: type[Answer], timeout: float) -> Answer:
        """Call, and raise RpcError when the answer says that it did not succeed."""
        got = await self._answer(rpc, request, answer, timeout)
        verdict = got if isinstance(got, Response) else _verdict(got)
        if verdict is not None and not verdict.success:
            raise RpcError(rpc, verdict.message, response=got)
        return got


def _verdict(answer: Message) -> Response | None:
    """The ``response`` of an answer; None when it has none, which counts as success."""
    if not answer.HasField("response"):
        return None
    verdict = getattr(answer, "response", None)
    return verdict if isinstance(verdict, Response) else None
