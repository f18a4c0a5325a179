"""How long a VM that never comes up waits for its next start (``vm.go:1477-1603``)."""

from __future__ import annotations

import random
from collections.abc import Callable
from datetime import datetime, timedelta

from kvnode.controller.instance import has_run, is_final, moment
from kvnode.controller.meta import at, status_of
from kvnode.kube.objects import Object, timestamp, uid_of

MAXIMUM_DELAY = 300
"""Seconds."""

RESTARTING = ("Always", "RerunOnFailure", "Once")
"""Run strategies that keep count of failed starts."""

_SHORTEST = 10


def start_delay(failures: int, maximum: int, roll: Callable[[int], int] = random.randrange) -> int:
    """Seconds to wait after so many failed starts in a row: growing with their square, a third of it by chance.

    ``roll(n)`` gives a whole number from 0 to n - 1.
    """
    delay = max(maximum // 30, _SHORTEST) * max(failures, 1) ** 2
    return min(delay + roll(delay // 2 + 1), maximum)


def time_left(vm: Object, now: datetime) -> int:
    """Seconds until the VM may be started; 0: now."""
    due = moment(at(vm, "status", "startFailure", "retryAfterTimestamp"))
    return max(0, int(due.timestamp()) - int(now.timestamp())) if due else 0


def note_start_failure(vm: Object, vmi: Object | None, strategy: str | None, now: datetime) -> None:
    """Count a VMI that ended without ever running, once; forget the count when one runs.

    `strategy` is None when it cannot be told.
    """
    status = status_of(vm)
    if (vmi is not None and has_run(vmi)) or (strategy is not None and strategy not in RESTARTING):
        status.pop("startFailure", None)
        return
    if vmi is None or not is_final(vmi):
        return
    failure = status.get("startFailure") or {}
    if failure and failure.get("lastFailedVMIUID", "") == uid_of(vmi):
        return
    count = int(failure.get("consecutiveFailCount") or 0) + 1
    delay = start_delay(count, MAXIMUM_DELAY)
    status["startFailure"] = {
        "consecutiveFailCount": count,
        "lastFailedVMIUID": uid_of(vmi),
        "retryAfterTimestamp": timestamp(now + timedelta(seconds=delay)),
    }
