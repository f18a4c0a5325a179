"""VMIs that are to come to this node from another.

This agent receives no guests yet. Their owners are told so once, where the reference would prepare the launcher that
waits for them (``pkg/virt-handler/migration-target.go``); the guests go on where they are.
"""

from __future__ import annotations

from kvnode.agent.parts import Recorder
from kvnode.agent.vmi import Vmi, is_final, is_owned_by, key_of, status, uid_of
from kvnode.kube.informer import Change

REFUSAL = "this node's agent does not receive VMs from other nodes yet: the migration to {} will not begin"


class Targets:
    """Those of which the node is the target."""

    def __init__(self, node: str, recorder: Recorder) -> None:
        """`recorder` is told of each."""
        self._node = node
        self._recorder = recorder
        self._told: dict[str, tuple[str, str]] = {}

    def changed(self, change: Change) -> None:
        """A VMI came, changed, or is not to come any more."""
        vmi = change.after
        if vmi is None or not self._is_awaited(vmi):
            self._told.pop(change.key, None)
            return
        migration = (uid_of(vmi), str((status(vmi).get("migrationState") or {}).get("migrationUid") or ""))
        if self._told.get(change.key) != migration:
            self._told[key_of(vmi)] = migration
            self._recorder.event(vmi, "Warning", "SyncFailed", REFUSAL.format(self._node))

    def _is_awaited(self, vmi: Vmi) -> bool:
        state = status(vmi).get("migrationState") or {}
        ended = state.get("endTimestamp") or state.get("completed") or state.get("failed")
        return not ended and not is_final(vmi) and not is_owned_by(vmi, self._node)

    def __len__(self) -> int:
        return len(self._told)
