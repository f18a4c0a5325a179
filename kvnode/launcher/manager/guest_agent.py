"""Commands for the guest's agent, through libvirt."""

from __future__ import annotations

import asyncio
import base64
import binascii
import json
import time
from collections.abc import Mapping, Sequence
from typing import Any

import libvirt
import libvirt_qemu

from kvnode.launcher.log import logger
from kvnode.launcher.manager.cache import TimedCache
from kvnode.launcher.manager.errors import ExecExit, ManagerError, NoDomainError, is_not_found
from kvnode.launcher.manager.host import Host
from kvnode.launcher.manager.states import HEALTHY_PAUSES, reason_name

#: Seconds for which the agent's answers are kept (``pkg/virt-launcher/virtwrap/manager.go:138``).
KEPT_SECONDS: Mapping[str, float] = {
    **dict.fromkeys(("guest-get-load", "guest-get-cpustats", "guest-get-diskstats"), 20.0),
    **dict.fromkeys(
        ("guest-get-time", "guest-get-vcpus", "guest-get-memory-block-info", "guest-get-users"), 60.0
    ),
    **dict.fromkeys(
        (
            "guest-get-osinfo",
            "guest-get-disks",
            "guest-get-host-name",
            "guest-get-timezone",
            "guest-network-get-route",
            "guest-network-get-interfaces",
        ),
        300.0,
    ),
    "guest-get-memory-blocks": 1800.0,
}

#: Seconds between looks whether a command in the guest has ended: the first, and the longest.
FIRST_LOOK = 0.05


class GuestAgent:
    """The agent of the guest."""

    def __init__(self, host: Host) -> None:
        """Ask the agent of ``host``'s domain."""
        self._host = host
        self.probes_paused = False
        """Probes of the agent succeed without asking it (an annotation of the VMI)."""

        self._kept = {
            command: TimedCache(seconds, lambda command=command: self._raw(command))  # type: ignore[misc]
            for command, seconds in KEPT_SECONDS.items()
        }

    async def ask(
        self, command: str, arguments: Mapping[str, Any] | None = None, domain: str | None = None
    ) -> Any:
        """What the agent returns to a command.

        Raises libvirtError when it does not answer, ManagerError when the answer is none.
        """
        text = await self._raw(command, arguments, domain)
        try:
            answer = json.loads(text)
        except ValueError:
            raise ManagerError(f"the guest agent's answer to {command} is not JSON") from None
        if not isinstance(answer, dict) or "return" not in answer:
            raise ManagerError(f"the guest agent's answer to {command} returns nothing")
        return answer["return"]

    async def _raw(
        self, command: str, arguments: Mapping[str, Any] | None = None, domain: str | None = None
    ) -> str:
        order: dict[str, Any] = {"execute": command}
        if arguments is not None:
            order["arguments"] = arguments
        if domain is not None and domain != self._host.options.domain:
            raise NoDomainError(domain)

        def ask() -> str:
            found = self._host.domain()
            # The third argument of libvirt's own default: it waits five seconds.
            return str(
                libvirt_qemu.qemuAgentCommand(
                    found, json.dumps(order), libvirt_qemu.VIR_DOMAIN_QEMU_AGENT_COMMAND_DEFAULT, 0
                )
            )

        return await self._host.ask_agent(ask)

    async def data(self, command: str) -> str:
        """The agent's whole answer to one of the commands that are kept; raises ManagerError for another."""
        if not self._host.options.vm_stats:
            raise ManagerError("the guest agent's data are not gathered (--vm-stats-collector)")
        kept = self._kept.get(command)
        if kept is None:
            raise ManagerError(f"{command} is no command whose answers are kept")
        return await kept.get()

    async def ping(self, domain: str) -> None:
        """Ask for a sign of life. A guest that is paused for a good reason need not give one."""
        if self.probes_paused:
            return
        try:
            await self.ask("guest-ping", domain=domain)
        except (libvirt.libvirtError, NoDomainError) as error:
            if not (_is_unavailable(error) and await self._host.call(self._is_well, domain)):
                raise
            logger.debug("the guest agent does not answer, and need not: %s", error)

    def _is_well(self, name: str) -> bool:
        """Whether the guest is paused for a good reason, or just not there yet or any more. Blocks."""
        if name != self._host.options.domain:
            return False
        domain = self._host.lookup()
        if domain is None:
            return True
        try:
            state, reason = domain.state()
        except libvirt.libvirtError:
            return True
        return state == libvirt.VIR_DOMAIN_PAUSED and reason_name(state, reason) in HEALTHY_PAUSES

    async def execute(self, domain: str, command: str, arguments: Sequence[str], seconds: int) -> str:
        """Run a command in the guest and return what it printed.

        Raises ExecExit for a code that is not 0, ManagerError when it has not ended after ``seconds``,
        libvirtError.
        """
        until = time.monotonic() + max(seconds, 0)
        order = {"path": command, "arg": list(arguments), "capture-output": True}
        begun = await self.ask("guest-exec", order, domain)
        pid = begun.get("pid") if isinstance(begun, dict) else None
        if not isinstance(pid, int) or pid <= 0:
            raise ManagerError("the guest agent gave no process id of the command")
        pause = FIRST_LOOK
        while True:
            status = await self.ask("guest-exec-status", {"pid": pid}, domain)
            if isinstance(status, dict) and status.get("exited"):
                return _ended(status)
            left = until - time.monotonic()
            if left <= 0:
                raise ManagerError(f"{command} has not ended in the guest within {seconds} s")
            await asyncio.sleep(min(pause, left))
            pause = min(pause * 2, max(seconds / 10, FIRST_LOOK))


def _is_unavailable(error: Exception) -> bool:
    if isinstance(error, NoDomainError):
        return True
    unresponsive = libvirt.VIR_ERR_AGENT_UNRESPONSIVE
    return isinstance(error, libvirt.libvirtError) and (
        is_not_found(error) or error.get_error_code() == unresponsive
    )


def _ended(status: Mapping[str, Any]) -> str:
    try:
        output = base64.b64decode(str(status.get("out-data") or "")).decode("utf-8", "replace")
    except (binascii.Error, ValueError):
        raise ManagerError("the guest agent's record of the command's output is not base64") from None
    code = status.get("exitcode", 0)
    if isinstance(status.get("signal"), int) and not code:
        code = 128 + status["signal"]
    if code:
        raise ExecExit(int(code), output)
    return output
