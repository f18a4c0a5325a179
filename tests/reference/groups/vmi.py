"""``vmi``: what the VirtualMachineInstance controller does in one pass."""

from __future__ import annotations

from tests.reference.common import Case, Outcome
from tests.reference.vmicases import VMIScene, wanted


def run(case: Case) -> Outcome:
    """Run one row."""
    return Outcome.of(wanted(case.data), VMIScene(case.data["input"]).reconcile())
