"""Whether a VMI is on its way to another node (``pkg/virt-handler/controller.go:243,376-406``)."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from kvnode.agent import domain as states
from kvnode.agent.domain import Domain
from kvnode.agent.phase import is_migration_target
from kvnode.agent.vmi import Vmi, is_time_past, status

_PAUSED_FOR_MIGRATION = ("Migration", "StartingUp", "Postcopy")


def _state(vmi: Vmi) -> Mapping[str, Any]:
    return status(vmi).get("migrationState") or {}


def is_in_progress(vmi: Vmi, domain: Domain | None) -> bool:
    """Whether the migration controllers have the VMI in hand now, and this one must not touch it."""
    state = _state(vmi)
    if state.get("startTimestamp") and not state.get("endTimestamp"):
        return True
    if domain is not None:
        if domain.metadata("Migration", "StartTimestamp") and not domain.metadata(
            "Migration", "EndTimestamp"
        ):
            return True
        if domain.status == states.PAUSED and domain.reason in _PAUSED_FOR_MIGRATION:
            return True
    return is_migration_target(vmi) and not state.get("completed")


def is_migrating(vmi: Vmi, now: datetime) -> bool:
    """Whether a migration has begun and not ended by the clock (``pkg/util/migrations/migrations.go:76``)."""
    state = _state(vmi)
    started = is_time_past(state.get("startTimestamp"), now)
    return started and not is_time_past(state.get("endTimestamp"), now)


def is_synchronized_source(vmi: Vmi) -> bool:
    """Whether the VMI's guest is about to go to another cluster, and both sides know it."""
    target = _state(vmi).get("targetState") or {}
    return target.get("syncAddress") is not None and target.get("nodeAddress") is not None


def is_source(vmi: Vmi, node: str) -> bool:
    """Whether this node still has the guest of a migration that has a target."""
    state = _state(vmi)
    return (
        state.get("sourceNode") == node
        and (not _is_between_clusters(state) or is_synchronized_source(vmi))
        and bool(state.get("targetNodeAddress"))
        and not state.get("completed")
    )


def _is_between_clusters(state: Mapping[str, Any]) -> bool:
    source, target = state.get("sourceState"), state.get("targetState")
    if source is None or target is None:
        return False
    return (source.get("syncAddress") is None) != (target.get("syncAddress") is None)
