"""SIGKILL of any one process of a VM: its outcome, and nothing left behind."""

from __future__ import annotations

import dataclasses
import os
import signal
from pathlib import Path

import pytest

from kvnode.standalone.runner import Runner, StartOptions, VmInfo
from tests.standalone.helpers import alive, kernel_vmi, mounts_below, sockets_below, wait_for_text, wait_until

pytestmark = pytest.mark.integration


def assert_nothing_left(runner: Runner, before: VmInfo, state_dir: Path) -> None:
    """After a look at the VMs, no process, mount or socket of the VM is there."""
    wait_until(lambda: not runner.get(before.name).running, 120, "the end of the VM")
    assert not any(alive(pid) for pid in before.pids.values())
    assert sockets_below(state_dir) == []
    assert mounts_below(state_dir) == []
    assert not (state_dir / "vms/default_victim/run").exists()


@pytest.mark.parametrize(
    ("role", "reason"),
    [("qemu", "QemuDied"), ("launcher", "LauncherDied"), ("launcher-monitor", "LauncherDied")],
)
def test_what_a_vm_cannot_do_without_ends_it(
    runner: Runner, kernel: StartOptions, state_dir: Path, role: str, reason: str
) -> None:
    info = runner.start(kernel_vmi("victim"), kernel)
    os.kill(info.pids[role], signal.SIGKILL)
    assert_nothing_left(runner, info, state_dir)
    ended = runner.get("victim")
    assert (ended.phase, ended.reason) == ("Failed", reason)
    assert ended.message
    assert runner.start(kernel_vmi("victim"), kernel).running


@pytest.mark.parametrize("role", ["virtqemud", "virtlogd"])
def test_a_daemon_comes_back_and_the_guest_goes_on(runner: Runner, kernel: StartOptions, role: str) -> None:
    info = runner.start(kernel_vmi("victim", terminationGracePeriodSeconds=600), kernel)
    wait_for_text(runner.log_paths("victim")["serial"], "kvnode-guest: up after")
    os.kill(info.pids[role], signal.SIGKILL)
    wait_until(
        lambda: runner.get("victim").pids.get(role, info.pids[role]) != info.pids[role], 120, f"a new {role}"
    )
    again = runner.get("victim")
    assert (again.phase, again.pids["qemu"]) == ("Running", info.pids["qemu"])
    assert runner.stop("victim").outcome == "shutdown"


@pytest.mark.parametrize("role", ["launcher", "launcher-monitor", "virtqemud", "virtlogd"])
def test_killed_while_it_starts(runner: Runner, kernel: StartOptions, state_dir: Path, role: str) -> None:
    runner.start(kernel_vmi("victim"), dataclasses.replace(kernel, wait=False))
    wait_until(lambda: role in runner.get("victim").pids, 120, f"a {role}")
    info = runner.get("victim")
    os.kill(info.pids[role], signal.SIGKILL)
    if role in {"virtqemud", "virtlogd"}:
        assert runner.wait("victim", ("Running",), 240).phase == "Running"
    else:
        assert_nothing_left(runner, info, state_dir)
        assert runner.get("victim").phase == "Failed"


def test_everything_killed_at_once(runner: Runner, kernel: StartOptions, state_dir: Path) -> None:
    info = runner.start(kernel_vmi("victim"), kernel)
    for pid in info.pids.values():
        try:
            os.kill(pid, signal.SIGKILL)
        except ProcessLookupError:
            continue
    assert_nothing_left(runner, info, state_dir)
