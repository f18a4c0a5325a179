"""AgentConnected and AgentVersionNotSupported (``pkg/virt-handler/vm.go:852-920``, ``guestagent.go``)."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from kvnode.agent.conditions import listing
from kvnode.agent.parts import Clock, Launchers
from kvnode.agent.vmi import Vmi, spec
from kvnode.api.phases import ConditionType

BASIC = (
    "guest-ping",
    "guest-get-time",
    "guest-info",
    "guest-shutdown",
    "guest-network-get-interfaces",
    "guest-get-fsinfo",
    "guest-get-host-name",
    "guest-get-users",
    "guest-get-timezone",
    "guest-get-osinfo",
)
SSH = (
    "guest-ssh-get-authorized-keys",
    "guest-ssh-add-authorized-keys",
    "guest-ssh-remove-authorized-keys",
)
SSH_BY_FILES = (
    "guest-exec-status",
    "guest-exec",
    "guest-file-open",
    "guest-file-close",
    "guest-file-read",
    "guest-file-write",
)
"""How keys are written into guests whose agent has no commands for it."""
PASSWORD = ("guest-set-user-password",)


async def set_agent_connected(
    vmi: Vmi, connected: bool, launchers: Launchers, versions: Sequence[str], clock: Clock
) -> None:
    """Set both conditions of ``vmi``; ``versions`` are the patterns of agents that name no commands.

    Raises one of `errors.FAILURES` when the launcher cannot say what the agent is.
    """
    status = vmi["status"]
    if not connected:
        listing.remove(status, ConditionType.AGENT_CONNECTED)
        return
    if listing.find(status, ConditionType.AGENT_CONNECTED) is None:
        listing.add(
            status, listing.make(ConditionType.AGENT_CONNECTED.value, listing.TRUE, probed=clock.now())
        )
    info = await (await launchers.client(vmi)).guest_info()
    flaw = flaw_of(vmi, info, versions)
    kind = ConditionType.AGENT_VERSION_NOT_SUPPORTED
    if not flaw:
        listing.remove(status, kind)
    elif listing.find(status, kind) is None:
        listing.add(status, listing.make(kind.value, listing.TRUE, reason=flaw, probed=clock.now()))


def flaw_of(vmi: Vmi, info: Mapping[str, Any], versions: Sequence[str]) -> str:
    """What is wrong with a guest's agent, "" when nothing is; the texts are the API's, in ``reason``."""
    commands = info.get("supportedCommands") or ()
    if not commands:
        version = str(info.get("guestAgentVersion") or "")
        if any(_matches(pattern, version) for pattern in versions):
            return ""
        return f"Guest agent version '{version}' is not supported"
    enabled = {str(one.get("name")) for one in commands if one.get("enabled")}
    if not enabled.issuperset(BASIC):
        return "This guest agent doesn't support required basic commands"
    by_ssh, by_password = _credentials(vmi)
    if by_ssh and not (enabled.issuperset(SSH) or enabled.issuperset(SSH_BY_FILES)):
        return "This guest agent doesn't support required public key commands"
    if by_password and not enabled.issuperset(PASSWORD):
        return "This guest agent doesn't support required password commands"
    return ""


def _credentials(vmi: Vmi) -> tuple[bool, bool]:
    """Whether SSH keys, and whether passwords, reach the guest through its agent."""
    credentials = spec(vmi).get("accessCredentials") or ()
    return (
        _any_by_agent(one.get("sshPublicKey") for one in credentials),
        _any_by_agent(one.get("userPassword") for one in credentials),
    )


def _any_by_agent(sources: Iterable[Mapping[str, Any] | None]) -> bool:
    return any(
        ((source or {}).get("propagationMethod") or {}).get("qemuGuestAgent") is not None
        for source in sources
    )


def _matches(pattern: str, version: str) -> bool:
    try:
        return re.search(pattern, version) is not None
    except re.error:
        return False
