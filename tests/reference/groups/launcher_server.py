"""``launcher_server``: the command server over a manager that records its calls.

What the recorded manager returned is not in a row by itself: it is read back out of the row's answer, so that
ours returns the same and must be written to the same bytes.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import Any

from google.protobuf.json_format import MessageToDict, ParseDict

from kvnode.launcher.manager.errors import CheckpointInvalidError, ExecExit, ManagerError
from kvnode.launcher.manager.states import reason_name, state_name
from kvnode.launcher.server.commands import Commands
from kvnode.launcher.server.vm_stats import AGENT_COMMANDS
from kvnode.rpc.cmd import CMD
from kvnode.rpc.errors import RpcError
from kvnode.virt.domain_json import decode_domain
from kvnode.virt.domain_json.gojson import decode, decode_many, encode
from kvnode.virt.domain_json.shape import Struct
from kvnode.virt.payloads import guest, migration, sev, stats
from tests.reference.common import Case, Outcome

#: Our manager's methods whose calls were recorded under a name and without arguments.
_PLAIN = {
    "pause": "PauseVMI",
    "unpause": "UnpauseVMI",
    "unfreeze": "UnfreezeVMI",
    "reset": "ResetVMI",
    "soft_reboot": "SoftRebootVMI",
    "shutdown": "SignalShutdownVMI",
    "kill": "KillVMI",
    "delete": "DeleteVMI",
    "update_cpus": "UpdateVCPUs",
    "update_memory": "UpdateGuestMemory",
    "hotplug_host_devices": "HotplugHostDevices",
    "cancel_migration": "CancelVMIMigration",
    "finalize_migration": "FinalizeVirtualMachineMigration",
    "backup": "BackupVirtualMachine",
    "inject_launch_secret": "InjectLaunchSecret",
}


class Recorder:
    """A domain manager that does as the recorded one did."""

    def __init__(self, row: dict[str, Any]) -> None:
        self.calls: list[str] = []
        self._row = row
        self._response: dict[str, Any] = row.get("response") or {}

    def __getattr__(self, name: str) -> Callable[..., Awaitable[None]]:
        if name not in _PLAIN:
            raise AttributeError(name)

        async def call(*_arguments: object) -> None:
            self._record(_PLAIN[name])

        return call

    def _record(self, call: str, *, fails: bool = True) -> None:
        self.calls.append(call)
        if fails and self._row["manager_fails"]:
            raise ManagerError("manager failure")

    def _answered(self, field: str, part: str | None = None) -> Any:
        """What the answer holds; ``part`` is the sub-message of GetVMStats' answer that has it."""
        holder = self._response.get(part, {}) if part and self._row["rpc"] == "GetVMStats" else self._response
        message = ParseDict(holder, CMD.methods[_RPC_OF.get(field, self._row["rpc"])].response())
        return getattr(message, field)

    def _one(self, struct: Struct, text: str | bytes) -> dict[str, Any] | None:
        return None if text in ("", b"", "null", b"null") else decode(struct, text)

    async def sync(self, _vmi: object, options: object, _plugins: object) -> None:
        self._record(f"SyncVMI(allowEmulation=true,options={'false' if options is None else 'true'})")

    async def prepare_migration_target(self, _vmi: object, _options: object, _plugins: object) -> None:
        self._record("PrepareMigrationTarget(allowEmulation=true)")

    async def freeze(self, _vmi: object, seconds: int) -> None:
        self._record(f"FreezeVMI({seconds})")

    async def memory_dump(self, _vmi: object, path: str) -> None:
        self._record(f"MemoryDump({path})")

    async def migrate(self, _vmi: object, options: dict[str, Any] | None) -> None:
        text = "null" if options is None else encode(migration.MIGRATION_OPTIONS, options)
        self._record(f"MigrateVMI({text})")

    async def redefine_checkpoint(self, _vmi: object, checkpoint: dict[str, Any]) -> None:
        self._record(f"RedefineCheckpoint({checkpoint['name']})", fails=False)
        if self._row["manager_fails"]:
            invalid = self._response.get("checkpointInvalid", False)
            raise (CheckpointInvalidError if invalid else ManagerError)("manager failure")

    async def domain(self) -> dict[str, Any] | None:
        self._record("ListAllDomains")
        text = self._answered("domain")
        return decode_domain(text) if text else None

    async def domain_stats(self) -> dict[str, Any] | None:
        self._record("GetDomainStats")
        return self._one(stats.DOMAIN_STATS, self._answered("domainStats", "domainStats"))

    async def dirty_rate(self, seconds: float) -> int | None:
        self._record(f"GetDomainDirtyRateStats({seconds:g}s)")
        holder = self._response.get("dirtyRateStats", self._response)
        if not holder.get("response", {}).get("success"):
            return None
        return int(holder.get("dirtyRateMbs", 0))

    async def guest_info(self) -> dict[str, Any]:
        self._record("GetGuestInfo", fails=False)
        return decode(guest.AGENT_INFO, self._answered("guestInfoResponse"))

    async def users(self) -> Sequence[dict[str, Any]] | None:
        self._record("GetUsers", fails=False)
        return decode_many(guest.USER, self._answered("guestUserListResponse"))

    async def filesystems(self) -> Sequence[dict[str, Any]] | None:
        self._record("GetFilesystems", fails=False)
        return decode_many(guest.FILESYSTEM, self._answered("guestFilesystemsResponse"))

    async def guest_agent_version(self) -> str:
        self._record("GetGuestAgentVersion", fails=False)
        return str(self._response.get("guestAgentVersion", {}).get("message", ""))

    async def agent_data(self, command: str) -> str:
        self._record(f"GetAgentData({command})")
        field = next(f for f, c in AGENT_COMMANDS.items() if c == command)
        return str(self._response.get(field, {}).get("message", ""))

    async def execute(self, domain: str, command: str, arguments: Sequence[str], seconds: int) -> str:
        listed = ",".join(f'"{argument}"' for argument in arguments)
        self._record(f'Exec("{domain}","{command}",[{listed}],{seconds})')
        output = self._response.get("stdOut", "")
        if self._row["manager_mode"] == "exit-code":
            raise ExecExit(3, output)
        return str(output)

    async def guest_ping(self, domain: str) -> None:
        self._record(f"GuestPing({domain})")

    async def qemu_version(self) -> str:
        self._record("GetQemuVersion")
        return str(self._answered("version"))

    async def sev_info(self) -> dict[str, Any] | None:
        self._record("GetSEVInfo")
        return self._one(sev.PLATFORM_INFO, self._answered("sevInfo"))

    async def launch_measurement(self, _vmi: object) -> dict[str, Any] | None:
        self._record("GetLaunchMeasurement")
        return self._one(sev.MEASUREMENT_INFO, self._answered("launchMeasurement"))

    async def screenshot(self, _vmi: object) -> tuple[str, bytes] | None:
        self._record("GetScreenshot")
        if "response" not in self._row:
            return None
        return self._answered("mime"), self._answered("data")


_RPC_OF = {"domainStats": "GetDomainStats"}


def run(case: Case) -> Outcome:
    """Call the handler with the row's request; compare the answer and what was passed on."""
    row = case.data
    if row["rpc"] is None:
        return _names(row)
    method = CMD.methods[row["rpc"]]
    recorder = Recorder(row)
    switched_off = row["rpc"] == "GetVMStats" and any(
        word in row["case"] for word in ("disabled", "gate", "off")
    )
    commands = Commands(recorder, vm_stats=not switched_off, pod_name="")  # type: ignore[arg-type]
    handler = commands.handlers()[row["rpc"]]
    request = ParseDict(row["request"], method.request())
    want = {name: row[name] for name in ("response", "rpc_error", "panic", "manager_calls") if name in row}
    got: dict[str, Any] = {"rpc_error": False}
    try:
        answer: Any = asyncio.run(handler(request, None))  # type: ignore[arg-type]
    except RpcError as error:
        got["rpc_error"] = True
        answer = error.response
    if answer is not None and ("response" in row or "panic" in row):
        got["response"] = MessageToDict(answer, preserving_proto_field_name=True)
    got["manager_calls"] = recorder.calls
    return Outcome.of(want, got)


def _names(row: dict[str, Any]) -> Outcome:
    states, reasons = row["state_by_number"], row["reason_by_state_and_number"]
    return Outcome.of(
        {"states": states, "reasons": reasons},
        {
            "states": {number: state_name(int(number)) for number in states},
            "reasons": {
                state: {number: reason_name(int(state), int(number)) for number in names}
                for state, names in reasons.items()
            },
        },
    )
