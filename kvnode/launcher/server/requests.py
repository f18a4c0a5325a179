"""What requests carry as JSON, read and checked."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from kvnode.launcher.manager.errors import ManagerError
from kvnode.launcher.manager.instance import Instance
from kvnode.rpc.cmd_v1_pb2 import VirtualMachineOptions
from kvnode.virt.domain_json.errors import DomainFormatError
from kvnode.virt.domain_json.gojson import decode, decode_many
from kvnode.virt.domain_json.shape import Struct
from kvnode.virt.payloads.backup import BACKUP_CHECKPOINT, BACKUP_OPTIONS
from kvnode.virt.payloads.migration import MIGRATION_OPTIONS
from kvnode.virt.payloads.plugins import PLUGIN
from kvnode.virt.payloads.sev import SECRET_OPTIONS

# What an export must name, and how that is called (``pkg/virt-launcher/virtwrap/cmd-server/server.go``,
# validateBackupExportRequest).
_EXPORT_NEEDS = (
    "exportServerAddr",
    "exportServerName",
    "backupName",
    "backupStartTime",
    "backupCert",
    "backupKey",
    "caCert",
)


class RefusalError(ManagerError):
    """A request that is not passed on; the text says what it should have carried."""


def instance_of(request: Any) -> Instance:
    """The VMI of a request.

    Raises:
        RefusalError: there is none, or what is there cannot be read.
    """
    if not request.HasField("vmi"):
        raise RefusalError("the request carries no VMI")
    try:
        return Instance.read(request.vmi.vmiJson)
    except DomainFormatError as error:
        raise RefusalError(f"the request carries no valid VMI: {error}") from None


def options_of(request: Any) -> VirtualMachineOptions | None:
    """The options of a VMIRequest; None when it carries none."""
    return request.options if request.HasField("options") else None


def plugins_of(request: Any) -> Sequence[Mapping[str, Any]]:
    """The cluster's plugins, out of the options of a VMIRequest; raises RefusalError."""
    text = request.options.pluginsJson
    if not text:
        return ()
    try:
        return decode_many(PLUGIN, text) or ()
    except DomainFormatError as error:
        raise RefusalError(f"the plugins in the options cannot be read: {error}") from None


def migration_options_of(request: Any) -> Mapping[str, Any] | None:
    """How to migrate; None for JSON's null, which is the reference's default. Raises RefusalError."""
    if not request.options:
        raise RefusalError("the request carries no migration options")
    if request.options.strip() == b"null":
        return None
    return _read(MIGRATION_OPTIONS, request.options, "migration options")


def secret_options_of(request: Any) -> Mapping[str, Any]:
    """The secret of an encrypted guest; raises RefusalError."""
    return _read(SECRET_OPTIONS, request.options, "secret options")


def checkpoint_of(request: Any) -> Mapping[str, Any]:
    """The checkpoint to redefine; raises RefusalError."""
    return _read(BACKUP_CHECKPOINT, request.checkpoint, "checkpoint")


def backup_options_of(request: Any) -> Mapping[str, Any]:
    """What backup to start, export or abort; raises RefusalError for an order that is not complete."""
    if not request.options:
        raise RefusalError("the request carries no backup options")
    options = _read(BACKUP_OPTIONS, request.options, "backup options")
    command, mode = options["cmd"], options["mode"]
    if command == "Start":
        if mode not in ("Push", "Pull"):
            raise RefusalError(f"backup options: mode must be Push or Pull, is {mode[:40]!r}")
        if options["targetPath"] is None:
            raise RefusalError("backup options: targetPath is missing")
    elif command == "Export":
        if mode != "Pull":
            raise RefusalError("backup options: only a backup of mode Pull can be exported")
        missing = [name for name in _EXPORT_NEEDS if not _given(options[name])]
        if missing:
            raise RefusalError(f"backup options: an export needs {', '.join(missing)}")
    elif command != "Abort":
        raise RefusalError(f"backup options: cmd must be Start, Export or Abort, is {command[:40]!r}")
    return options


def require_change_tracking(vmi: Instance) -> None:
    """Backups need it (``pkg/virt-launcher/virtwrap/storage/cbt.go``); raises RefusalError without."""
    tracking = vmi.status.get("changedBlockTracking") or {}
    if tracking.get("state") != "Enabled":
        raise RefusalError("changed block tracking is not enabled for the VMI (status.changedBlockTracking)")


def _given(value: object) -> bool:
    return value is not None and value != ""


def _read(struct: Struct, data: bytes, what: str) -> dict[str, Any]:
    try:
        return decode(struct, data)
    except DomainFormatError as error:
        raise RefusalError(f"the request carries no valid {what}: {error}") from None


__all__ = [
    "RefusalError",
    "backup_options_of",
    "checkpoint_of",
    "instance_of",
    "migration_options_of",
    "options_of",
    "plugins_of",
    "require_change_tracking",
    "secret_options_of",
]
