"""``conditions``: what the agent makes of a VMI's conditions, one rule at a time."""

from __future__ import annotations

from typing import Any

from kvnode.agent.conditions import guest_agent, migratable, state
from kvnode.agent.domain import Domain
from kvnode.agent.errors import AgentError, CriticalNetworkError, IrrecoverableError, SecureBootError
from kvnode.spec.config import ClusterConfig
from tests.reference.common import Case, Outcome
from tests.reference.groups._agent import NOW, Clock, Recorder, conditions, domain, drive

#: The cluster that all these rows are of.
CLUSTER = {
    "network": {"binding": {"mig_plug": {"migration": {}}, "nomig_plug": {}}},
    "permittedHostDevices": {
        "mediatedDevices": [{"mdevNameSelector": "m", "resourceName": "vendor.com/mdev"}],
        "pciHostDevices": [{"pciVendorSelector": "1:1", "resourceName": "vendor.com/pci"}],
    },
}
ERRORS = {
    "generic": AgentError,
    "network-critical": CriticalNetworkError,
    "secureboot": SecureBootError,
    "irrecoverable": IrrecoverableError,
}


def run(case: Case) -> Outcome:
    """One row of any kind."""
    rule = {
        "migration": _migration,
        "agent": _agent,
        "agent-channel": _channel,
        "paused": _paused,
        "access-credentials": _credentials,
        "software-emulation": _emulation,
        "synchronized": _synchronized,
    }.get(case.data["kind"])
    if rule is None:
        return Outcome.missing(f"conditions of kind {case.data['kind']}")
    got = rule(case.data)
    return Outcome.of({name: case.data.get(name) for name in got}, got)


def _config(row: dict[str, Any]) -> ClusterConfig:
    return ClusterConfig.from_mapping(
        {**CLUSTER, "developerConfiguration": {"featureGates": row["feature_gates"] or []}}
    )


def _migration(row: dict[str, Any]) -> dict[str, Any]:
    vmi, events = row["vmi"], []
    node = migratable.Node(_config(row), row["host_cpu_model"])
    migratable.set_migratable(vmi, node, Recorder(events))
    storage = next(one for one in vmi["status"]["conditions"] if one["type"] == "StorageLiveMigratable")
    parts = (storage.get("message") or "").split(", ") if storage["status"] == "False" else []
    reasons = ",".join(part.partition(":")[0] for part in parts if "LiveMigratable: " in part)
    return {
        "conditions_after": conditions(vmi),
        "migration_method": vmi["status"]["migrationMethod"],
        "events": events or None,
        "volume_check_error": migratable.check_volumes(vmi)[1] is not None,
        "storage_reasons": reasons or None,
    }


class _Launcher:
    def __init__(self, row: dict[str, Any], calls: list[str]):
        self._row, self._calls = row, calls

    async def client(self, _vmi):
        return self

    async def guest_info(self):
        self._calls.append("launcher.GetGuestInfo")
        if self._row["guest_info_error"]:
            raise AgentError("some failure")
        return self._row["guest_info"]


def _agent(row: dict[str, Any]) -> dict[str, Any]:
    vmi, calls, failed = row["vmi"], [], False
    versions = row["supported_agent_versions_config"]
    launcher = _Launcher(row, calls)
    try:
        drive(guest_agent.set_agent_connected(vmi, row["channel_connected"], launcher, versions, Clock()))
    except AgentError:
        failed = True
    return {"conditions_after": conditions(vmi), "calls": calls or None, "returns_error": failed}


def _channel(row: dict[str, Any]) -> dict[str, Any]:
    channels = row["channels"]
    return {"connected": domain("Running", Devices={"Channels": channels}).has_guest_agent}


def _paused(row: dict[str, Any]) -> dict[str, Any]:
    about = row["domain"]
    state.set_paused(row["vmi"], domain(about["status"], about["reason"]) if about else None, "node01", NOW)
    return {"conditions_after": conditions(row["vmi"])}


def _credentials(row: dict[str, Any]) -> dict[str, Any]:
    events: list[str] = []
    metadata = {"KubeVirt": {"AccessCredential": row["domain_access_credential"]}}
    about: Domain = domain("Running", Metadata=metadata)
    state.set_access_credentials(row["vmi"], about, Recorder(events), NOW)
    return {"conditions_after": conditions(row["vmi"]), "events": events or None}


def _emulation(row: dict[str, Any]) -> dict[str, Any]:
    gate = _config(row).gate("CrossArchitectureVirtualization")
    kind = row["domain_type"]
    about = domain("Running", Type=kind) if kind else None
    state.set_software_emulation(row["vmi"], about, gate=gate, host=row["host_arch"], now=NOW)
    return {"conditions_after": conditions(row["vmi"]), "gate_effective": gate}


def _error(name: str) -> Exception | None:
    """The error that a row's name stands for; the bare class of a network error has no text."""
    if name == "none":
        return None
    kind = ERRORS[name.removesuffix("-wrapped")]
    inner = kind("" if name == "network-critical" else "some failure")
    if not name.endswith("-wrapped"):
        return inner
    outer = AgentError("wrapped")
    outer.__cause__ = inner
    return outer


def _synchronized(row: dict[str, Any]) -> dict[str, Any]:
    state.set_synchronized(row["vmi"], _error(row["sync_error"]), NOW)
    return {"conditions_after": conditions(row["vmi"]), "phase_after": row["vmi"]["status"]["phase"]}
