"""Which part of the project a case is for, and which cases are not asked for yet."""

from __future__ import annotations

from tests.reference.common import Case

PARTS = ("launcher", "agent", "controllers")

_BY_GROUP = {
    "wire": "launcher",
    "rpcs": "launcher",
    "launcher_server": "launcher",
    "cloudinit": "launcher",
    "domain_json": "launcher",
    "phase": "agent",
    "agent_sync": "agent",
    "conditions": "agent",
    "ifstatus": "agent",
    "labels": "agent",
    "migration_sync": "agent",
    "vm": "controllers",
    "vm_status": "controllers",
    "start": "controllers",
    "vmi": "controllers",
}

# Fields of `payloads` rows that the agent answers, or puts together from what a launcher answered.
_AGENT_FIELDS = ("(server behaviour)", "(client-side result)", "(not on the wire")


def part_of(case: Case) -> str | None:
    """The part that needs the case; None for a group that nobody knows."""
    if case.group == "payloads":
        return "agent" if str(case.data.get("field", "")).startswith(_AGENT_FIELDS) else "launcher"
    if case.group == "net":
        return "launcher" if str(case.data.get("kind", "")).startswith("dhcp") else "agent"
    return _BY_GROUP.get(case.group)


def later(case: Case) -> str:
    """Why the case is not asked for yet; "" when it is."""
    if case.group == "migration_sync":
        return "migration"
    if case.group == "start" and _instance_type(case):
        return "instance types"
    return ""


def _instance_type(case: Case) -> bool:
    vm = (case.data.get("input") or {}).get("vm") or {}
    return bool((vm.get("spec") or {}).get("instancetype"))
