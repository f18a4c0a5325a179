"""The split of QEMU's memory, measured on guests that touch a known amount of theirs."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from kvnode.memory.report import MemoryReport
from kvnode.standalone.errors import EXIT_ENVIRONMENT
from kvnode.standalone.runner import Runner, StandaloneError, StartOptions
from tests.reports import report
from tests.standalone.conftest import kernel, runner, state_dir
from tests.standalone.helpers import kernel_vmi, wait_for_text, wait_until

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


@report("B09")
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


@report("B09")
def test_the_monitor_and_the_launcher_are_small(runner: Runner, kernel: StartOptions) -> None:
    report = measured(runner, kernel, "small", "")
    sizes = {line.role: line for line in report.processes}
    assert sizes["launcher-monitor"].peak <= 12 * MIB
    assert sizes["launcher-monitor"].resident + sizes["launcher"].resident <= 65 * MIB
    assert sizes["launcher-monitor"].proportional + sizes["launcher"].proportional <= 52 * MIB
    for role in ("launcher-monitor", "launcher", "virtlogd", "virtqemud"):
        assert sizes[role].verdict == "within", f"{role}: {sizes[role]}"


@pytest.fixture
def huge_pages() -> Iterator[None]:
    """Sixty-four free pages of 2 MiB, given back after the test."""
    pages = Path("/sys/kernel/mm/hugepages/hugepages-2048kB/nr_hugepages")
    wanted = int(pages.read_text()) + 64

    def granted() -> bool:
        """Memory that is in pieces is put together first."""
        Path("/proc/sys/vm/compact_memory").write_text("1")
        pages.write_text(str(wanted))
        return int(pages.read_text()) >= wanted

    try:
        wait_until(granted, 120, "64 huge pages")
        yield
    finally:
        pages.write_text(str(wanted - 64))


@pytest.mark.usefixtures("huge_pages")
@report("B09")
def test_huge_pages_are_guest_ram_and_the_tpm_has_its_own_line(runner: Runner, kernel: StartOptions) -> None:
    vmi = kernel_vmi("huge", memory="128Mi")
    vmi["spec"]["domain"]["memory"]["hugepages"] = {"pageSize": "2Mi"}
    vmi["spec"]["domain"]["resources"] = {"requests": {"memory": "128Mi"}}
    vmi["spec"]["domain"]["devices"]["tpm"] = {}
    runner.start(vmi, kernel)
    assert "kvnode-guest: tpm 2" in wait_for_text(
        runner.log_paths("huge")["serial"], "kvnode-guest: up after"
    )
    report = runner.memory("huge")
    assert (report.guest_backing, report.guest_resident) == ("hugepages", 128 * MIB)
    sizes = {line.role: line for line in report.processes}
    assert sizes["swtpm"].share == 53 * MIB
    assert sizes["swtpm"].verdict == "within"
    assert sizes["qemu"].resident < 200 * MIB, "the guest's RAM is not in it"
    assert report.page_tables_share > 0
    assert report.unassigned == ()
    runner.stop("huge")


def test_huge_pages_that_are_not_there_are_asked_for(runner: Runner, kernel: StartOptions) -> None:
    vmi = kernel_vmi("huge", memory="64Gi")
    vmi["spec"]["domain"]["memory"]["hugepages"] = {"pageSize": "2Mi"}
    vmi["spec"]["domain"]["resources"] = {"requests": {"memory": "64Gi"}}
    with pytest.raises(StandaloneError, match="32768 huge pages of 2048 KiB are needed") as error:
        runner.start(vmi, kernel)
    assert error.value.field == "spec.domain.memory.hugepages.pageSize"
    assert error.value.exit_code == EXIT_ENVIRONMENT
