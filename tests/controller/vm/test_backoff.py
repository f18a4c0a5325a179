from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kvnode.controller.vm.backoff import note_start_failure, start_delay, time_left
from kvnode.kube.objects import timestamp
from tests.controller.objects import calls, vm, vmi
from tests.reference.vmcases import VMScene

NOW = datetime(2030, 1, 1, 12, tzinfo=UTC)


@given(st.integers(-5, 10**6), st.integers(1, 10**6), st.floats(0, 1, exclude_max=True))
def test_delay_is_bounded(failures: int, maximum: int, chance: float) -> None:
    delay = start_delay(failures, maximum, lambda choices: int(choices * chance))
    assert min(10, maximum) <= delay <= maximum


@pytest.mark.parametrize(("failures", "low", "high"), [(1, 10, 15), (2, 40, 60), (3, 90, 135), (6, 300, 300)])
def test_delay_grows_with_the_square(failures: int, low: int, high: int) -> None:
    assert start_delay(failures, 300, lambda _: 0) == low
    assert start_delay(failures, 300, lambda choices: choices - 1) == high


def failure(count: int, uid: str = "old") -> dict[str, Any]:
    return {"consecutiveFailCount": count, "lastFailedVMIUID": uid, "retryAfterTimestamp": timestamp(NOW)}


def test_a_failure_is_counted_once() -> None:
    machine = vm(status={"startFailure": failure(2)})
    note_start_failure(machine, vmi("Failed"), "Always", NOW)
    assert machine["status"]["startFailure"]["consecutiveFailCount"] == 3
    assert machine["status"]["startFailure"]["lastFailedVMIUID"] == "vmi-uid"
    note_start_failure(machine, vmi("Failed"), "Always", NOW)
    assert machine["status"]["startFailure"]["consecutiveFailCount"] == 3


@pytest.mark.parametrize(
    ("instance", "strategy"),
    [(vmi("Failed", ran=True), "Always"), (None, "Manual"), (vmi("Failed"), "Halted")],
)
def test_the_count_is_forgotten(instance: Any, strategy: str) -> None:
    machine = vm(status={"startFailure": failure(2)})
    note_start_failure(machine, instance, strategy, NOW)
    assert "startFailure" not in machine["status"]


def test_time_left_is_in_whole_seconds() -> None:
    machine = vm(status={"startFailure": failure(1)})
    assert time_left(machine, NOW - timedelta(seconds=2.5)) == 3
    assert time_left(machine, NOW + timedelta(seconds=1)) == 0
    assert time_left(vm(), NOW) == 0


def test_a_vm_waits_for_its_time() -> None:
    told = {**failure(1), "retryAfterTimestamp": "<now+30s>"}
    output = VMScene({"vm": vm(status={"startFailure": told}), "vmi": None}).reconcile()
    assert calls(output) == ["update virtualmachines status"]
    assert output["queue"]["addedAfterSeconds"] == 30
    assert output["vmStatusWritten"]["printableStatus"] == "CrashLoopBackOff"
