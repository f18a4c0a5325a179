"""The split of QEMU's memory, measured on guests that touch a known amount of theirs."""

from __future__ import annotations

import pytest

from kvnode.memory.report import MemoryReport
from kvnode.standalone.runner import Runner, StartOptions
from tests.standalone.conftest import kernel, runner, state_dir
from tests.standalone.helpers import kernel_vmi, wait_for_text

__all__ = ["kernel", "runner", "state_dir"]

pytestmark = pytest.mark.integration

MIB = 1 << 20
DIFFERENCE = 128 * MIB


def measured(runner: Runner, options: StartOptions, name: str, arguments: str) -> MemoryReport:
    """Boot a guest with 384 MiB and measure it when it is up."""
    vmi = kernel_vmi(name, arguments, memory="384Mi")
    runner.start(vmi, options)
    wait_for_text(runner.log_paths(name)["serial"], "kvnode-guest: up after")
    report = runner.memory(name)
    runner.stop(name, now=True)
    return report


def test_what_the_guest_touches_is_guest_ram_and_nothing_else(runner: Runner, kernel: StartOptions) -> None:
    # A guest that touches memory takes some that booting used and gave back, which is resident already. So two
    # guests are compared that go beyond it; some 15 MiB of it are still left in the one that touches less.
    plain = measured(runner, kernel, "some", "kvnode.touch=160M")
    touched = measured(runner, kernel, "more", "kvnode.touch=288M")

    assert plain.guest_size == touched.guest_size == 384 * MIB
    assert plain.guest_resident > 160 * MIB
    grown = touched.guest_resident - plain.guest_resident
    assert abs(grown - DIFFERENCE) < 24 * MIB, (
        f"{grown / MIB:.0f} MiB more for {DIFFERENCE / MIB:.0f} touched"
    )

    def qemu(report: MemoryReport) -> int:
        return next(line.resident for line in report.processes if line.role == "qemu")

    assert abs(qemu(touched) - qemu(plain)) < 24 * MIB, "QEMU's own memory does not grow with the guest's"
    roles = [line.role for line in touched.processes]
    assert roles == ["launcher-monitor", "launcher", "virtlogd", "virtqemud", "qemu"]
    assert touched.guest_backing == "anonymous"
    assert 0 < touched.page_tables < 8 * MIB
    assert touched.overhead_requested > touched.overhead_used


def test_the_monitor_and_the_launcher_are_small(runner: Runner, kernel: StartOptions) -> None:
    report = measured(runner, kernel, "small", "")
    sizes = {line.role: line for line in report.processes}
    assert sizes["launcher-monitor"].peak <= 12 * MIB
    assert sizes["launcher-monitor"].resident + sizes["launcher"].resident <= 65 * MIB
    assert sizes["launcher-monitor"].proportional + sizes["launcher"].proportional <= 52 * MIB
    for role in ("launcher-monitor", "launcher", "virtlogd", "virtqemud"):
        assert sizes[role].verdict == "within", f"{role}: {sizes[role]}"
