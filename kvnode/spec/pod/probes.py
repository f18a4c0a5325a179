"""Probes of the guest, run in its pod (``rendercontainer.go:241``, ``template.go:1442``)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from kvnode.spec.pod.source import PodSource

LIBVIRT_STARTUP_DELAY = 10
"""Seconds after which a guest can be reached at all; added to a probe's own delay."""

_PROBE = "virt-probe"
_DEFAULTS = {"timeoutSeconds": 1, "periodSeconds": 10, "successThreshold": 1, "failureThreshold": 3}
_HANDLERS = ("exec", "httpGet", "tcpSocket")


def container_probe(probe: Mapping[str, Any], source: PodSource) -> dict[str, Any]:
    """A VMI's probe as one of its container; commands and pings go to the guest through the agent."""
    made: dict[str, Any] = {handler: probe[handler] for handler in _HANDLERS if handler in probe}
    for name, least in _DEFAULTS.items():
        made[name] = probe[name] if probe.get(name, 0) >= 1 else least
    delay = probe.get("initialDelaySeconds", 0) + LIBVIRT_STARTUP_DELAY
    if delay:
        made["initialDelaySeconds"] = delay
    action = _guest_action(probe)
    if action is not None:
        timeout = made["timeoutSeconds"]
        domain = f"{source.namespace}_{source.name}"
        command = [_PROBE, "--domainName", domain, "--timeoutSeconds", str(timeout), *action]
        made["exec"] = {"command": command}
        # A second for getting there; the guest has as long as it was given.
        made["timeoutSeconds"] = timeout + 1
    return made


def _guest_action(probe: Mapping[str, Any]) -> list[str] | None:
    """What the agent is to do; None: nothing."""
    if "guestAgentPing" in probe:
        return ["--guestAgentPing"]
    command = probe.get("exec", {}).get("command", [])
    if not command or command[0] == _PROBE:
        return None
    return ["--command", command[0], "--", *command[1:]]
