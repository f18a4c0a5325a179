"""Reading a VirtualMachineInstance as the API server gives it: plain mappings, absent where nothing is set.

``staging/src/kubevirt.io/api/core/v1/types.go:521-690``
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Any

from kvnode.api.names import API_VERSION, NODE_NAME_LABEL, VIRTUAL_MACHINE_INSTANCE
from kvnode.api.phases import Phase

Vmi = dict[str, Any]

MIGRATION_TARGET_ANNOTATION = "kubevirt.io/create-migration-target"

_FINAL = (Phase.SUCCEEDED, Phase.FAILED)


def copy_of(vmi: Mapping[str, Any]) -> Vmi:
    """A deep copy, down to all mappings and lists."""
    return {name: _copied(value) for name, value in vmi.items()}


def _copied(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {name: _copied(item) for name, item in value.items()}
    return [_copied(item) for item in value] if isinstance(value, list) else value


def reference(namespace: str, name: str, uid: str = "") -> Vmi:
    """What is known of a VMI whose object is gone."""
    return {
        "apiVersion": API_VERSION,
        "kind": VIRTUAL_MACHINE_INSTANCE,
        "metadata": {"namespace": namespace, "name": name, "uid": uid},
        "spec": {},
        "status": {},
    }


def metadata(vmi: Mapping[str, Any]) -> Mapping[str, Any]:
    """Its metadata."""
    return vmi.get("metadata") or {}


def spec(vmi: Mapping[str, Any]) -> Mapping[str, Any]:
    """Its spec."""
    return vmi.get("spec") or {}


def status(vmi: Mapping[str, Any]) -> Mapping[str, Any]:
    """Its status."""
    return vmi.get("status") or {}


def key_of(vmi: Mapping[str, Any]) -> str:
    """``namespace/name``."""
    return f"{metadata(vmi).get('namespace') or ''}/{metadata(vmi).get('name') or ''}"


def uid_of(vmi: Mapping[str, Any]) -> str:
    """Its UID, "" when it is not known."""
    return str(metadata(vmi).get("uid") or "")


def annotations_of(vmi: Mapping[str, Any]) -> Mapping[str, str]:
    """Its annotations."""
    return metadata(vmi).get("annotations") or {}


def is_deleting(vmi: Mapping[str, Any]) -> bool:
    """Whether it was told to go."""
    return bool(metadata(vmi).get("deletionTimestamp"))


def phase_of(vmi: Mapping[str, Any]) -> str:
    """Its phase; "" before it has one."""
    return str(status(vmi).get("phase") or "")


def is_final(vmi: Mapping[str, Any]) -> bool:
    """Whether it has ended."""
    return phase_of(vmi) in _FINAL


def is_running(vmi: Mapping[str, Any]) -> bool:
    """Whether its phase is Running."""
    return phase_of(vmi) == Phase.RUNNING


def is_owned_by(vmi: Mapping[str, Any], node: str) -> bool:
    """Whether this node looks after it: its label or its status says so."""
    labels = metadata(vmi).get("labels") or {}
    return bool(node) and node in (labels.get(NODE_NAME_LABEL), status(vmi).get("nodeName"))


def grace_seconds(vmi: Mapping[str, Any]) -> int | None:
    """``spec.terminationGracePeriodSeconds``; None when it is not set."""
    seconds = spec(vmi).get("terminationGracePeriodSeconds")
    return seconds if isinstance(seconds, int) else None


def devices(vmi: Mapping[str, Any]) -> Mapping[str, Any]:
    """``spec.domain.devices``."""
    return (spec(vmi).get("domain") or {}).get("devices") or {}


def interfaces(vmi: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """``spec.domain.devices.interfaces``."""
    return devices(vmi).get("interfaces") or []


def volumes(vmi: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """``spec.volumes``."""
    return spec(vmi).get("volumes") or []


def volume_statuses(vmi: Mapping[str, Any]) -> list[dict[str, Any]]:
    """``status.volumeStatus``."""
    return status(vmi).get("volumeStatus") or []


def by_name(items: Iterable[Mapping[str, Any]]) -> dict[str, Mapping[str, Any]]:
    """Items by their ``name``; the last of several."""
    return {str(item.get("name") or ""): item for item in items}


def is_hotpluggable(volume: Mapping[str, Any]) -> bool:
    """Whether a volume is plugged into the running pod (``pkg/storage/types/volume.go:33-66``)."""
    sources = (volume.get(kind) or {} for kind in ("persistentVolumeClaim", "dataVolume", "memoryDump"))
    return any(source.get("hotpluggable") for source in sources)


def launch_security(vmi: Mapping[str, Any]) -> Mapping[str, Any] | None:
    """``spec.domain.launchSecurity``; None when it is not asked for."""
    return (spec(vmi).get("domain") or {}).get("launchSecurity")


def is_sev(vmi: Mapping[str, Any]) -> bool:
    """Whether AMD's SEV, in any of its generations, is asked for."""
    security = launch_security(vmi) or {}
    return security.get("sev") is not None or security.get("snp") is not None


def is_time_past(text: object, now: datetime) -> bool:
    """Whether an RFC 3339 time is there and not in the future; one that cannot be read counts as past."""
    if not text:
        return False
    try:
        return datetime.fromisoformat(str(text)) <= now
    except (ValueError, TypeError):
        return True
