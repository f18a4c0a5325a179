"""One handler for each method of ``kubevirt.cmd.v1.Cmd``
(``pkg/virt-launcher/virtwrap/cmd-server/server.go``).

A refusal or a failure is an answer whose ``success`` is false. Exec and GuestPing fail the call itself.
"""

from __future__ import annotations

import os
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from kvnode.launcher.manager.errors import CheckpointInvalidError, ExecExit
from kvnode.launcher.manager.instance import Instance
from kvnode.launcher.server import answers, requests
from kvnode.launcher.server.answers import failure, outcome, success
from kvnode.launcher.server.domain_manager import DomainManager
from kvnode.launcher.server.requests import RefusalError, instance_of, options_of, plugins_of
from kvnode.launcher.server.vm_stats import vm_stats
from kvnode.rpc.cmd import CMD
from kvnode.rpc.cmd_v1_pb2 import (
    DirtyRateStatsResponse,
    DomainResponse,
    DomainStatsResponse,
    ExecResponse,
    GuestFilesystemsResponse,
    GuestInfoResponse,
    GuestPingResponse,
    GuestUserListResponse,
    LaunchMeasurementResponse,
    QemuVersionResponse,
    RedefineCheckpointResponse,
    Response,
    ScreenshotResponse,
    SEVInfoResponse,
)
from kvnode.rpc.errors import RpcError
from kvnode.rpc.service import Handler
from kvnode.virt.domain_json import encode_domain
from kvnode.virt.payloads import guest, sev, stats

#: Seconds for which the dirtying of memory is measured.
DIRTY_RATE_SECONDS = 1.0

#: An annotation with which the reference's own tests make memory hot-plug fail.
_MEMORY_FAILS = "kubevirt.io/func-test-memory-hotplug-fail"

_Action = Callable[[Instance], Awaitable[object]]
GuestPingFailed = Callable[[], Awaitable[None]]
"""Told when the guest agent did not answer a probe, to report it as an event."""


@dataclass
class Commands:
    """The commands of one launcher."""

    manager: DomainManager
    vm_stats: bool = False
    """Whether GetVMStats is served (``--vm-stats-collector``)."""

    on_ping_failed: GuestPingFailed | None = None
    pod_name: str = field(default_factory=lambda: os.environ.get("POD_NAME", ""))
    exit_early: bool = False
    """The agent gave this pod up as target of a migration."""

    def handlers(self) -> dict[str, Handler]:
        """The handlers by method name."""
        own = {name: getattr(self, name) for name in CMD.methods if hasattr(type(self), name)}
        return {**own, **{name: self._about_vmi(name) for name in _VMI_ACTIONS}}

    # ---- about a VMI: the request's options do not matter

    def _about_vmi(self, rpc: str) -> Handler:
        action = _VMI_ACTIONS[rpc]

        async def handle(request: Any, _context: object) -> Response:
            return await self._with_vmi(rpc, request, lambda vmi: action(self.manager, vmi))

        return handle

    async def _with_vmi(self, rpc: str, request: Any, action: _Action) -> Response:
        async def work() -> None:
            await action(instance_of(request))

        return await outcome(rpc, work())

    # ---- about a VMI, with options

    async def SyncVirtualMachine(self, request: Any, _context: object) -> Response:  # noqa: N802
        """Make the domain what the VMI says."""
        return await self._with_vmi(
            "SyncVirtualMachine",
            request,
            lambda vmi: self.manager.sync(vmi, options_of(request), plugins_of(request)),
        )

    async def SyncMigrationTarget(self, request: Any, _context: object) -> Response:  # noqa: N802
        """Get ready to be migrated to."""
        return await self._with_vmi(
            "SyncMigrationTarget",
            request,
            lambda vmi: self.manager.prepare_migration_target(vmi, options_of(request), plugins_of(request)),
        )

    async def FinalizeVirtualMachineMigration(self, request: Any, _context: object) -> Response:  # noqa: N802
        """Finish a migration to here."""
        return await self._with_vmi(
            "FinalizeVirtualMachineMigration",
            request,
            lambda vmi: self.manager.finalize_migration(vmi, options_of(request)),
        )

    async def SyncVirtualMachineCPUs(self, request: Any, _context: object) -> Response:  # noqa: N802
        """Plug CPUs."""
        return await self._with_vmi(
            "SyncVirtualMachineCPUs", request, lambda vmi: self.manager.update_cpus(vmi, options_of(request))
        )

    async def SyncVirtualMachineMemory(self, request: Any, _context: object) -> Response:  # noqa: N802
        """Plug memory."""

        async def update(vmi: Instance) -> None:
            if _MEMORY_FAILS in vmi.annotations:
                raise RefusalError(_MEMORY_FAILS)
            await self.manager.update_memory(vmi)

        return await self._with_vmi("SyncVirtualMachineMemory", request, update)

    async def FreezeVirtualMachine(self, request: Any, _context: object) -> Response:  # noqa: N802
        """Freeze the guest's file systems."""
        return await self._with_vmi(
            "FreezeVirtualMachine",
            request,
            lambda vmi: self.manager.freeze(vmi, request.unfreezeTimeoutSeconds),
        )

    async def VirtualMachineMemoryDump(self, request: Any, _context: object) -> Response:  # noqa: N802
        """Dump the guest's memory."""
        return await self._with_vmi(
            "VirtualMachineMemoryDump", request, lambda vmi: self.manager.memory_dump(vmi, request.dumpPath)
        )

    async def MigrateVirtualMachine(self, request: Any, _context: object) -> Response:  # noqa: N802
        """Start a migration."""
        return await self._with_vmi(
            "MigrateVirtualMachine",
            request,
            lambda vmi: self.manager.migrate(vmi, requests.migration_options_of(request)),
        )

    async def InjectLaunchSecret(self, request: Any, _context: object) -> Response:  # noqa: N802
        """Hand an encrypted guest its secret."""
        return await self._with_vmi(
            "InjectLaunchSecret",
            request,
            lambda vmi: self.manager.inject_launch_secret(vmi, requests.secret_options_of(request)),
        )

    async def BackupVirtualMachine(self, request: Any, _context: object) -> Response:  # noqa: N802
        """Start, export or abort a backup."""

        async def backup(vmi: Instance) -> None:
            requests.require_change_tracking(vmi)
            await self.manager.backup(vmi, requests.backup_options_of(request))

        return await self._with_vmi("BackupVirtualMachine", request, backup)

    async def RedefineCheckpoint(self, request: Any, _context: object) -> RedefineCheckpointResponse:  # noqa: N802
        """Make a checkpoint known to libvirt again."""
        try:
            vmi = instance_of(request)
            requests.require_change_tracking(vmi)
            await self.manager.redefine_checkpoint(vmi, requests.checkpoint_of(request))
        except Exception as error:
            return RedefineCheckpointResponse(
                response=failure("RedefineCheckpoint", error),
                checkpointInvalid=isinstance(error, CheckpointInvalidError),
            )
        return RedefineCheckpointResponse(response=success())

    async def SignalTargetPodCleanup(self, request: Any, _context: object) -> Response:  # noqa: N802
        """Note that this pod is not wanted any more as target of a migration, if it is meant."""

        async def note(vmi: Instance) -> None:
            target = (vmi.status.get("migrationState") or {}).get("targetPod")
            if self.pod_name and target == self.pod_name:
                self.exit_early = True

        return await self._with_vmi("SignalTargetPodCleanup", request, note)

    async def GetLaunchMeasurement(self, request: Any, _context: object) -> LaunchMeasurementResponse:  # noqa: N802
        """The measurement of an encrypted guest."""
        try:
            measured = await self.manager.launch_measurement(instance_of(request))
            text = answers.one(sev.MEASUREMENT_INFO, measured)
        except Exception as error:
            return LaunchMeasurementResponse(response=failure("GetLaunchMeasurement", error))
        return LaunchMeasurementResponse(response=success(), launchMeasurement=text.encode())

    async def GetScreenshot(self, request: Any, _context: object) -> ScreenshotResponse:  # noqa: N802
        """A picture of the guest's screen."""
        try:
            picture = await self.manager.screenshot(instance_of(request))
        except Exception as error:
            return ScreenshotResponse(response=failure("GetScreenshot", error))
        if picture is None:
            return ScreenshotResponse(response=Response(message="the guest has no picture to show"))
        return ScreenshotResponse(response=success(), mime=picture[0], data=picture[1])

    # ---- about the domain

    async def Ping(self, _request: object, _context: object) -> Response:  # noqa: N802
        """Give a sign of life."""
        return success()

    async def GetDomain(self, _request: object, _context: object) -> DomainResponse:  # noqa: N802
        """The domain as JSON; none, and no text, before it is defined."""
        try:
            domain = await self.manager.domain()
            text = "" if domain is None else encode_domain(domain)
        except Exception as error:
            return DomainResponse(response=failure("GetDomain", error))
        return DomainResponse(response=success(), domain=text)

    async def GetDomainStats(self, _request: object, _context: object) -> DomainStatsResponse:  # noqa: N802
        """The domain's statistics as JSON."""
        try:
            text = answers.one(stats.DOMAIN_STATS, await self.manager.domain_stats())
        except Exception as error:
            return DomainStatsResponse(response=failure("GetDomainStats", error))
        return DomainStatsResponse(response=success(), domainStats=text)

    async def GetDomainDirtyRateStats(self, _request: object, _context: object) -> DirtyRateStatsResponse:  # noqa: N802
        """How fast the guest dirties memory, in MB a second."""
        try:
            rate = await self.manager.dirty_rate(DIRTY_RATE_SECONDS)
        except Exception as error:
            return DirtyRateStatsResponse(response=failure("GetDomainDirtyRateStats", error))
        if rate is None:
            return DirtyRateStatsResponse(response=Response(message="libvirt measured no dirty rate"))
        return DirtyRateStatsResponse(response=success(), dirtyRateMbs=rate)

    async def GetVMStats(self, request: Any, _context: object) -> Any:  # noqa: N802
        """The statistics that the request names."""
        if not self.vm_stats:
            raise RpcError("GetVMStats", "statistics of this kind are switched off (--vm-stats-collector)")
        return await vm_stats(
            request,
            self.manager,
            domain_stats=lambda: self.GetDomainStats(None, None),
            dirty_rate=lambda: self.GetDomainDirtyRateStats(None, None),
        )

    async def GetQemuVersion(self, _request: object, _context: object) -> QemuVersionResponse:  # noqa: N802
        """QEMU's version."""
        try:
            version = await self.manager.qemu_version()
        except Exception as error:
            return QemuVersionResponse(response=failure("GetQemuVersion", error))
        return QemuVersionResponse(response=success(), version=version)

    async def GetSEVInfo(self, _request: object, _context: object) -> SEVInfoResponse:  # noqa: N802
        """About the platform's encryption of guests."""
        try:
            text = answers.one(sev.PLATFORM_INFO, await self.manager.sev_info())
        except Exception as error:
            return SEVInfoResponse(response=failure("GetSEVInfo", error))
        return SEVInfoResponse(response=success(), sevInfo=text.encode())

    # ---- about the guest

    async def GetGuestInfo(self, _request: object, _context: object) -> GuestInfoResponse:  # noqa: N802
        """What the guest agent told."""
        try:
            text = answers.one(guest.AGENT_INFO, await self.manager.guest_info())
        except Exception as error:
            return GuestInfoResponse(response=failure("GetGuestInfo", error))
        return GuestInfoResponse(response=success(), guestInfoResponse=text)

    async def GetUsers(self, _request: object, _context: object) -> GuestUserListResponse:  # noqa: N802
        """Who is logged in."""
        try:
            text = answers.many(guest.USER, await self.manager.users())
        except Exception as error:
            return GuestUserListResponse(response=failure("GetUsers", error))
        return GuestUserListResponse(response=success(), guestUserListResponse=text)

    async def GetFilesystems(self, _request: object, _context: object) -> GuestFilesystemsResponse:  # noqa: N802
        """The guest's file systems."""
        try:
            text = answers.many(guest.FILESYSTEM, await self.manager.filesystems())
        except Exception as error:
            return GuestFilesystemsResponse(response=failure("GetFilesystems", error))
        return GuestFilesystemsResponse(response=success(), guestFilesystemsResponse=text)

    async def Exec(self, request: Any, _context: object) -> ExecResponse:  # noqa: N802
        """Run a command in the guest. A code that is not 0 is an answer; all else fails the call."""
        try:
            output = await self.manager.execute(
                request.domainName, request.Command, list(request.Args), request.timeoutSeconds
            )
        except ExecExit as ended:
            return ExecResponse(response=success(), exitCode=ended.code, stdOut=ended.output)
        except Exception as error:
            response = failure("Exec", error)
            raise RpcError("Exec", response.message, response=ExecResponse(response=response)) from None
        return ExecResponse(response=success(), stdOut=output)

    async def GuestPing(self, request: Any, _context: object) -> GuestPingResponse:  # noqa: N802
        """Ask the guest agent for a sign of life; the call fails when there is none."""
        try:
            await self.manager.guest_ping(request.domainName)
        except Exception as error:
            response = failure("GuestPing", error)
            if self.on_ping_failed is not None:
                await self.on_ping_failed()
            answer = GuestPingResponse(response=response)
            raise RpcError("GuestPing", response.message, response=answer) from None
        return GuestPingResponse(response=success())


_VMI_ACTIONS: Mapping[str, Callable[[DomainManager, Instance], Awaitable[None]]] = {
    "PauseVirtualMachine": lambda manager, vmi: manager.pause(vmi),
    "UnpauseVirtualMachine": lambda manager, vmi: manager.unpause(vmi),
    "UnfreezeVirtualMachine": lambda manager, vmi: manager.unfreeze(vmi),
    "ResetVirtualMachine": lambda manager, vmi: manager.reset(vmi),
    "SoftRebootVirtualMachine": lambda manager, vmi: manager.soft_reboot(vmi),
    "ShutdownVirtualMachine": lambda manager, vmi: manager.shutdown(vmi),
    "KillVirtualMachine": lambda manager, vmi: manager.kill(vmi),
    "DeleteVirtualMachine": lambda manager, vmi: manager.delete(vmi),
    "CancelVirtualMachineMigration": lambda manager, vmi: manager.cancel_migration(vmi),
    "HotplugHostDevices": lambda manager, vmi: manager.hotplug_host_devices(vmi),
}
