"""``vm``: what the VirtualMachine controller does in one pass."""

from __future__ import annotations

from typing import Any

from kvnode.controller.vm.backoff import start_delay
from tests.reference.common import Case, Outcome
from tests.reference.vmcases import VMScene, wanted


def run(case: Case) -> Outcome:
    """Run one row."""
    row = case.data
    if row["group"] == "backoff-formula":
        return Outcome.of(row["output"], _delays(row["input"]))
    return Outcome.of(wanted(row), VMScene(row["input"]).reconcile())


def _delays(given: dict[str, Any]) -> dict[str, int]:
    count, most = given["failCount"], given["maxDelay"]
    return {
        "minSeconds": start_delay(count, most, lambda _: 0),
        "maxSeconds": start_delay(count, most, lambda choices: choices - 1),
    }
