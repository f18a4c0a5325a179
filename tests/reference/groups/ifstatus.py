"""``ifstatus``: ``status.interfaces`` from what each source knows."""

from __future__ import annotations

from typing import Any

from kvnode.agent.interfaces import interface_statuses
from tests.reference.common import Case, Outcome
from tests.reference.groups._agent import domain


class _Pod:
    def __init__(self, cached: list[dict[str, Any]]):
        self._cached = {one["name"]: one["ips"] or [] for one in cached}

    def pod_addresses(self, _vmi, network):
        return self._cached.get(network, [])


def run(case: Case) -> Outcome:
    """One row."""
    given = case.data["input"]
    vmi = {
        "spec": {
            "networks": given["networks"],
            "domain": {"devices": {"interfaces": given["spec_interfaces"]}},
        },
        "status": {"interfaces": given["status_before"]},
    }
    aliases = given["domain_hostdev_aliases"] or []
    devices = {
        "Interfaces": given["domain_interfaces"],
        "HostDevices": [{"Alias": {"Name": alias, "UserDefined": True}} for alias in aliases],
    }
    about = None
    if not case.data["case"].startswith("no-domain"):
        about = domain("Running", Devices=devices)
        about.raw["Status"]["Interfaces"] = given["agent_interfaces"]
    got = interface_statuses(vmi, about, _Pod(given["pod_cache"] or []))
    want = {name: case.data[name] for name in ("status_interfaces", "returns_error")}
    return Outcome.of(want, {"status_interfaces": got or None, "returns_error": False})
