"""The phase of a VMI, from its domain's state (``pkg/virt-handler/vm.go:2300-2390``)."""

from __future__ import annotations

from kvnode.agent import domain as states
from kvnode.agent.domain import Domain
from kvnode.agent.parts import Launchers, LauncherState, Queue
from kvnode.agent.vmi import (
    MIGRATION_TARGET_ANNOTATION,
    Vmi,
    annotations_of,
    grace_seconds,
    is_final,
    is_running,
    key_of,
    phase_of,
    status,
)
from kvnode.api.phases import Phase

STARTING_RETRY = 1.0
"""Seconds until a launcher that is starting is looked at again."""

_RUNS = (states.RUNNING, states.BLOCKED, states.PM_SUSPENDED)
_ENDED_WELL = ("Shutdown", "Saved", "FromSnapshot")
_ENDED_BADLY = ("Crashed", "Panicked")


def is_migration_target(vmi: Vmi) -> bool:
    """Whether the VMI receives its guest from another cluster."""
    return annotations_of(vmi).get(MIGRATION_TARGET_ANNOTATION) == "true"


async def compute_phase(vmi: Vmi, domain: Domain | None, launchers: Launchers, queue: Queue) -> str:
    """The phase that the VMI should have now.

    The launcher is asked after only where there is no domain and the VMI is Scheduled. One that is starting is come
    back to in a second.
    """
    if domain is not None:
        return phase_of_domain(vmi, domain)
    launcher = None
    if _depends_on_launcher(vmi):
        launcher = await launchers.state(vmi)
        if launcher is LauncherState.STARTING:
            queue.add_after(key_of(vmi), STARTING_RETRY)
    return phase_without_domain(vmi, launcher)


def phase_without_domain(vmi: Vmi, launcher: LauncherState | None) -> str:
    """The phase of a VMI that has no domain; ``launcher`` counts where the VMI is Scheduled."""
    now = phase_of(vmi)
    if is_final(vmi) or _failed_as_target(vmi):
        return now
    lost = Phase.WAITING_FOR_SYNC if is_migration_target(vmi) else Phase.FAILED
    gone = launcher is LauncherState.UNRESPONSIVE if now == Phase.SCHEDULED else is_running(vmi)
    return lost.value if gone else Phase.SCHEDULED.value


def phase_of_domain(vmi: Vmi, domain: Domain) -> str:
    """The phase of a VMI that has a domain. States that say nothing leave it as it is."""
    if domain.status in (states.SHUTOFF, states.CRASHED):
        return _phase_of_ended(vmi, domain)
    if domain.failed_post_copy:
        return Phase.FAILED.value
    if domain.status == states.PAUSED or domain.status in _RUNS:
        return Phase.RUNNING.value
    return phase_of(vmi)


def _phase_of_ended(vmi: Vmi, domain: Domain) -> str:
    if domain.reason in _ENDED_BADLY:
        return Phase.FAILED.value
    if domain.reason in _ENDED_WELL:
        return Phase.SUCCEEDED.value
    if domain.reason == "Destroyed":
        # A guest that had the means to shut down in time and was destroyed all the same did not go by itself.
        killed = domain.has_acpi and grace_seconds(vmi) != 0
        migration = status(vmi).get("migrationState") or {}
        lost = migration.get("failed") and migration.get("mode") == "PostCopy"
        return (Phase.FAILED if killed or lost else Phase.SUCCEEDED).value
    return phase_of(vmi)


def _depends_on_launcher(vmi: Vmi) -> bool:
    return phase_of(vmi) == Phase.SCHEDULED and not _failed_as_target(vmi)


def _failed_as_target(vmi: Vmi) -> bool:
    return is_migration_target(vmi) and bool((status(vmi).get("migrationState") or {}).get("failed"))
