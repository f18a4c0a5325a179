"""What a VirtualMachineInstance's phase, conditions and migration say."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from kvnode.api.phases import Phase
from kvnode.controller import names
from kvnode.controller.meta import annotations_of, at, labels_of
from kvnode.kube.objects import Object


def phase(vmi: Object) -> str:
    """Its phase, "" before it has one."""
    return str(at(vmi, "status", "phase") or "")


def is_final(vmi: Object) -> bool:
    """Whether it will never run again."""
    return phase(vmi) in (Phase.SUCCEEDED, Phase.FAILED)


def is_unprocessed(vmi: Object) -> bool:
    """Whether it has no pod yet."""
    return phase(vmi) in (Phase.UNSET, Phase.PENDING)


def is_waiting_for_sync(vmi: Object) -> bool:
    """Whether it waits for the other side of a migration."""
    return phase(vmi) == Phase.WAITING_FOR_SYNC


def has_run(vmi: Object) -> bool:
    """Whether it ever was Running."""
    seen = at(vmi, "status", "phaseTransitionTimestamps") or ()
    return any(one.get("phase") == Phase.RUNNING for one in seen)


def migration(vmi: Object) -> dict[str, Any]:
    """Its migration's state, an empty mapping when there is none."""
    return at(vmi, "status", "migrationState") or {}


def is_migration_completed(vmi: Object) -> bool:
    """Whether its migration has ended."""
    return bool(migration(vmi).get("completed"))


def is_decentralized_migration(vmi: Object) -> bool:
    """Whether it migrates between clusters or namespaces: one side alone has an address to meet at."""
    state = migration(vmi)
    source, target = state.get("sourceState"), state.get("targetState")
    if source is None or target is None:
        return False
    return (source.get("syncAddress") is None) != (target.get("syncAddress") is None)


def is_migrating(vmi: Object | None, now: datetime) -> bool:
    """Whether a migration has started and not ended (``pkg/util/migrations/migrations.go:76``)."""
    if vmi is None:
        return False
    state = migration(vmi)
    started, ended = moment(state.get("startTimestamp")), moment(state.get("endTimestamp"))
    return started is not None and started <= now and not (ended is not None and ended <= now)


def is_migration_target(vmi: Object) -> bool:
    """Whether it was made to receive a running VM."""
    return annotations_of(vmi).get(names.MIGRATION_TARGET_ANNOTATION) == "true"


def is_target_node_known(vmi: Object) -> bool:
    """Whether the sender has said where it is to run."""
    return names.MIGRATION_TARGET_NODE_LABEL in labels_of(vmi)


def moment(text: object) -> datetime | None:
    """The moment that an API timestamp names; None for nothing and for what is no timestamp."""
    try:
        return datetime.fromisoformat(str(text)) if text else None
    except ValueError:
        return None


def vcpus(cpu: dict[str, Any] | None) -> int:
    """Virtual CPUs of a topology (``pkg/util/hardware``): each part counts as one if it is absent."""
    made = 1
    for part in ("sockets", "cores", "threads"):
        made *= int((cpu or {}).get(part) or 1)
    return made
