"""Stop a VM: its power button, its grace period, its end."""

from __future__ import annotations

import contextlib
import signal
import time

from kvnode.standalone import records
from kvnode.standalone.model import Progress, StopResult
from kvnode.standalone.start import DEFAULT_GRACE_SECONDS
from kvnode.standalone.state import StateDirectory, VmDirectory, kill

#: Seconds beyond the grace period in which the launcher must have ended everything by itself.
MARGIN_SECONDS = 15.0
_POLL_SECONDS = 0.05
_LOCK_SECONDS = 5.0


def stop_vm(
    state: StateDirectory, vm: VmDirectory, *, now: bool, timeout: float | None, progress: Progress
) -> StopResult:
    """Stop a VM and clean up behind it; raises StandaloneError when it cannot be ended."""
    began = time.monotonic()
    process = vm.process()
    if process is None:
        with state.lock(vm, wait=_LOCK_SECONDS):
            state.tidy(vm)
        return _result(vm, "not-running", began)
    grace = 0.0 if now else _grace(vm) if timeout is None else max(0.0, timeout)
    if "launcher" in vm.pids():
        progress("stop", "ending the guest" if now else f"asking the guest to shut down (it has {grace:g} s)")
        with contextlib.suppress(OSError):
            records.write_json(vm.path / "stop.json", {"grace": grace})
        records.send_signal(process, signal.SIGTERM)
        end = time.monotonic() + grace + MARGIN_SECONDS
        while records.alive(process) and time.monotonic() < end:
            time.sleep(_POLL_SECONDS)
    if records.alive(process):
        kill(process)
    with state.lock(vm, wait=_LOCK_SECONDS):
        state.tidy(vm)
    return _result(vm, "", began)


def _grace(vm: VmDirectory) -> float:
    seconds = (records.read_json(vm.path / "record.json") or {}).get("graceSeconds")
    return float(seconds) if isinstance(seconds, int | float) else DEFAULT_GRACE_SECONDS


def _result(vm: VmDirectory, outcome: str, began: float) -> StopResult:
    status = records.read_json(vm.path / "status.json") or {}
    if outcome != "not-running":
        destroyed = status.get("phase") != "Succeeded" or status.get("reason") == "Destroyed"
        outcome = "destroyed" if destroyed else "shutdown"
    return StopResult(
        namespace=vm.namespace,
        name=vm.name,
        outcome="not-running"
        if outcome == "not-running"
        else "destroyed"
        if outcome == "destroyed"
        else "shutdown",
        seconds=time.monotonic() - began,
        phase=str(status.get("phase", "Unknown")),
        message=str(status.get("message", "")),
    )
