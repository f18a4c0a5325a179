"""``payloads``: the JSON inside fields, what a reader must accept, and which version two sides speak."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

from kvnode.rpc.errors import VersionError
from kvnode.rpc.versions import highest_common
from kvnode.virt.domain_json import DomainFormatError, decode_domain, encode_domain
from kvnode.virt.domain_json.gojson import decode, decode_many, encode, encode_many
from kvnode.virt.domain_json.schema.status import DOMAIN_STATUS
from kvnode.virt.domain_json.shape import Struct
from kvnode.virt.payloads import backup, guest, kubernetes, migration, plugins, sev, stats
from kvnode.virt.payloads.events import ERROR, read_domain_event
from kvnode.virt.payloads.instance import read_instance
from tests.reference.common import Case, Outcome

RoundTrip = Callable[[str], str]


def _one(struct: Struct) -> RoundTrip:
    return lambda text: encode(struct, decode(struct, text))


def _list(struct: Struct) -> RoundTrip:
    return lambda text: encode_many(struct, decode_many(struct, text))


#: Go type to the function that reads its JSON and writes it again; it raises DomainFormatError for what
#: is refused.
ROUND_TRIPS: dict[str, RoundTrip] = {
    "api.Domain": lambda text: encode_domain(decode_domain(text)),
    "api.DomainStatus": _one(DOMAIN_STATUS),
    "stats.DomainStats": _one(stats.DOMAIN_STATS),
    "stats.VMStats": _one(stats.VM_STATS),
    "v1.VirtualMachineInstanceGuestAgentInfo": _one(guest.AGENT_INFO),
    "[]v1.VirtualMachineInstanceGuestOSUser": _list(guest.USER),
    "[]v1.VirtualMachineInstanceFileSystem": _list(guest.FILESYSTEM),
    "v1.VirtualMachineInstanceGuestOSUserList": _one(guest.USER_LIST),
    "v1.VirtualMachineInstanceFileSystemList": _one(guest.FILESYSTEM_LIST),
    "v1.SEVPlatformInfo": _one(sev.PLATFORM_INFO),
    "v1.SEVMeasurementInfo": _one(sev.MEASUREMENT_INFO),
    "v1.SEVSecretOptions": _one(sev.SECRET_OPTIONS),
    "cmdclient.MigrationOptions": _one(migration.MIGRATION_OPTIONS),
    "v1alpha1.BackupOptions": _one(backup.BACKUP_OPTIONS),
    "v1alpha1.BackupCheckpoint": _one(backup.BACKUP_CHECKPOINT),
    "[]v1alpha1.Plugin": _list(plugins.PLUGIN),
    "v1.Status": _one(kubernetes.STATUS),
    "v1.Event": _one(kubernetes.EVENT),
}


def run(case: Case) -> Outcome:
    """Run one row of any of the four kinds."""
    row = case.data
    if row["field"] == "(version negotiation)":
        return _negotiation(row)
    if row["field"] == "(server behaviour)":
        return _event(row)
    if row["go_type"] == "*v1.VirtualMachineInstance":
        return _instance(row)
    round_trip = ROUND_TRIPS.get(row["go_type"].removeprefix("*"))
    if round_trip is None:
        return Outcome.missing(f"JSON of {row['go_type']}")
    if "accept_input" in row:
        want = {"error": True} if row.get("error") else {"json": row["json"]}
        return Outcome.of(want, _read_again(round_trip, row["accept_input"]))
    want = {"json": row.get("json_after_round_trip", row["json"])}
    return Outcome.of(want, _read_again(round_trip, row["json"]))


def _event(row: dict[str, Any]) -> Outcome:
    """What the agent's notify server makes of an event."""
    names = ("rpc_error", "success", "has_message", "emitted_type", "emitted_object")
    want = {name: row[name] for name in names if name in row}
    kind = row["event_type"]
    try:
        about = read_domain_event(kind, row["domain_json"].encode(), row["status_json"].encode())
    except DomainFormatError:
        return Outcome.of(want, _answer(success=False))
    if about is None:
        return Outcome.of(want, _answer(success=True))
    text = encode(kubernetes.STATUS, about) if kind == ERROR else encode_domain(about)
    return Outcome.of(want, {**_answer(success=True), "emitted_type": kind, "emitted_object": text})


def _answer(*, success: bool) -> dict[str, Any]:
    return {"rpc_error": False, "success": success, "has_message": not success, "emitted_type": None}


def _instance(row: dict[str, Any]) -> Outcome:
    """A whole VMI is read, and equal as JSON: what Go writes though nobody set it does not count."""
    want = {"error": True} if row.get("error") else _set_fields(json.loads(row["json"]))
    try:
        got = _set_fields(read_instance(row["accept_input"] if "accept_input" in row else row["json"]))
    except DomainFormatError:
        got = {"error": True}
    return Outcome.of(want, got)


def _set_fields(vmi: Any) -> Any:
    """Without what is empty, and without ``runtimeUser: 0``, which stands for root and for not set alike."""
    if isinstance(vmi, dict):
        kept = {name: _set_fields(item) for name, item in vmi.items() if (name, item) != ("runtimeUser", 0)}
        return {name: item for name, item in kept.items() if item not in (None, "", {}, [])}
    return [_set_fields(item) for item in vmi] if isinstance(vmi, list) else vmi


def _negotiation(row: dict[str, Any]) -> Outcome:
    want = {"version": row["version"], "error": row["error"]}
    try:
        version = highest_common(row["server_versions"], row["client_versions"])
    except VersionError:
        return Outcome.of(want, {"version": 0, "error": True})
    return Outcome.of(want, {"version": version, "error": False})


def _read_again(round_trip: RoundTrip, text: str) -> dict[str, Any]:
    try:
        return {"json": round_trip(text)}
    except DomainFormatError:
        return {"error": True}
