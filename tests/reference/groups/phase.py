"""``phase``: the phase of a VMI, from its domain's state and reason, for each phase that it may be in."""

from __future__ import annotations

from typing import Any

from kvnode.agent.domain import Domain
from kvnode.agent.errors import AgentError
from kvnode.agent.parts import LauncherState
from kvnode.agent.phase import compute_phase
from tests.reference.common import Case, Outcome
from tests.reference.groups._agent import drive

#: What ``migration`` stands for: annotations and ``status.migrationState``.
TARGET = {"kubevirt.io/create-migration-target": "true"}
MIGRATIONS: dict[str, tuple[dict[str, str], dict[str, Any] | None]] = {
    "none": ({}, None),
    "failed-precopy": ({}, {"failed": True, "mode": "PreCopy"}),
    "failed-postcopy": ({}, {"failed": True, "mode": "PostCopy"}),
    "running-postcopy": ({}, {"mode": "PostCopy"}),
    "completed": ({}, {"completed": True}),
    "cross-cluster-target": (TARGET, None),
    "cross-cluster-target-failed": (TARGET, {"failed": True}),
}
STATES = {
    "ok": LauncherState.READY,
    "unresponsive": LauncherState.UNRESPONSIVE,
    "uninitialized": LauncherState.STARTING,
}


class Launchers:
    """One launcher, in the state that the case names."""

    def __init__(self, state: str | None):
        self._state = state

    async def state(self, _vmi):
        if self._state not in STATES:
            raise AgentError("some failure")
        return STATES[self._state]


class Queue:
    """Records what is put off."""

    def __init__(self):
        self.calls = []

    def add_after(self, _key, delay):
        self.calls.append(f"queue.AddAfter:{delay:g}s")


def run(case: Case) -> Outcome:
    """All phases of one row."""
    row = case.data
    names = ("by_phase", "error_for_phase", "requeue_for_phase")
    want = {name: row[name] for name in names if row.get(name)}
    got: dict[str, Any] = {name: {} for name in names}
    for phase in row["by_phase"]:
        queue = Queue()
        computed, failed = drive(_compute(row, phase, queue))
        got["by_phase"][phase] = computed
        if failed:
            got["error_for_phase"][phase] = True
        if queue.calls:
            got["requeue_for_phase"][phase] = queue.calls
    return Outcome.of(want, {name: value for name, value in got.items() if value})


async def _compute(row: dict[str, Any], phase: str, queue: Queue) -> tuple[str, bool]:
    vmi = vmi_of(row, phase)
    domain = domain_of(row["domain"]) if row["domain"] else None
    try:
        return await compute_phase(vmi, domain, Launchers(row.get("launcher")), queue), False
    except AgentError:
        return phase, True


def vmi_of(row: dict[str, Any], phase: str) -> dict[str, Any]:
    """The VMI that a row describes, in ``phase``."""
    annotations, migration = MIGRATIONS[row["migration"]]
    metadata: dict[str, Any] = {"name": "testvmi", "namespace": "default", "annotations": annotations}
    if row["deleting"]:
        metadata["deletionTimestamp"] = "2024-01-02T03:04:05Z"
    status: dict[str, Any] = {"phase": phase}
    if migration is not None:
        status["migrationState"] = migration
    spec = {} if row["vmi_grace"] is None else {"terminationGracePeriodSeconds": row["vmi_grace"]}
    return {"metadata": metadata, "spec": spec, "status": status}


def domain_of(row: dict[str, Any]) -> Domain:
    """The domain that a row describes."""
    grace = row.get("grace")
    metadata = {"GracePeriod": None if grace is None else {"DeletionGracePeriodSeconds": grace}}
    features = {"ACPI": {}} if row["acpi"] else {}
    spec = {"Features": features, "Metadata": {"KubeVirt": metadata}}
    return Domain({"Spec": spec, "Status": {"Status": row["status"], "Reason": row["reason"]}})
