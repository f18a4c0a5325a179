"""Helper threads off the guest's CPUs, and guests in real time: a process with QEMU's threads, in real groups."""

from __future__ import annotations

import os
import secrets
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kvnode.agent import threads
from kvnode.agent.cgroups import Groups, groups_of
from kvnode.agent.domain import Domain
from kvnode.agent.errors import AgentError
from kvnode.agent.housekeeping import (
    give_back,
    isolate_helpers,
    isolates_helpers,
    needs_scheduling,
    schedule,
)
from tests.agent.build import vmi

CPUSETS = Path("/sys/fs/cgroup/cpuset")
needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="schedules in real time")
version_1 = pytest.mark.skipif(
    os.geteuid() != 0 or not (CPUSETS / "cpuset.cpus").exists(),
    reason="needs control groups of version 1, and root",
)
QEMU = """
import ctypes, os, sys, threading
libc = ctypes.CDLL(None)
ready = threading.Barrier(4)
def run(name):
    libc.prctl(15, name, 0, 0, 0)
    ready.wait()
    threading.Event().wait()
for name in (b"CPU 0/KVM", b"CPU 1/KVM", b"IO mon_iothread"):
    threading.Thread(target=run, args=(name,), daemon=True).start()
libc.prctl(15, b"qemu-system-x86", 0, 0, 0)
ready.wait()
print(os.getpid(), flush=True)
sys.stdin.read()
"""


def machine(**cpu: Any) -> dict[str, Any]:
    return vmi("Scheduled", spec={"domain": {"cpu": cpu}})


def domain(cpus: str) -> Domain:
    return Domain({"Spec": {"CPUTune": {"EmulatorPin": {"CPUSet": cpus}}}})


@dataclass
class Process:
    """One that looks like QEMU."""

    pid: int
    launcher: int
    """A process that it is below, as no other of that kind is: this one may have guests of other tests."""

    @property
    def threads(self) -> dict[str, int]:
        found = [int(entry.name) for entry in Path(f"/proc/{self.pid}/task").iterdir()]
        return {threads.name_of(thread): thread for thread in found}


@pytest.fixture
def qemu() -> Iterator[Process]:
    command = ["sh", "-c", '"$@"; :', "sh", sys.executable, "-c", QEMU]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        pid = int(process.stdout.readline())
        try:
            yield Process(pid, process.pid)
        finally:
            os.kill(pid, signal.SIGKILL)


@pytest.fixture
def group(qemu: Process) -> Iterator[Path]:
    """A control group on all CPUs, with the process in it."""
    folder = CPUSETS / f"kvnode-test-{secrets.token_hex(4)}"
    folder.mkdir()
    try:
        for name in ("cpuset.cpus", "cpuset.mems"):
            (folder / name).write_text((CPUSETS / name).read_text().strip())
        (folder / "cgroup.procs").write_text(str(qemu.pid))
        yield folder
        (CPUSETS / "cgroup.procs").write_text(str(qemu.pid))
    finally:
        _remove(folder)


def _remove(folder: Path) -> None:
    inside = folder / "housekeeping"
    for thread in (inside / "tasks").read_text().split() if inside.exists() else ():
        (CPUSETS / "tasks").write_text(thread)
    for one in (inside, folder):
        if one.exists():
            one.rmdir()


def tasks(folder: Path) -> set[int]:
    return set(map(int, (folder / "tasks").read_text().split()))


def test_what_asks_for_what() -> None:
    assert isolates_helpers(machine(dedicatedCpuPlacement=True, isolateEmulatorThread=True))
    assert not isolates_helpers(machine(isolateEmulatorThread=True))
    assert not isolates_helpers(machine(dedicatedCpuPlacement=True))
    assert needs_scheduling(machine(realtime={}))
    assert needs_scheduling(machine(dedicatedCpuPlacement=True))
    assert not needs_scheduling(machine())
    assert not needs_scheduling(vmi("Failed", spec={"domain": {"cpu": {"realtime": {}}}}))


@version_1
class TestIsolation:
    def test_all_but_virtual_cpus_move_and_come_back(self, qemu: Process, group: Path) -> None:
        groups = groups_of(qemu.pid, root=CPUSETS.parent)
        last = max(os.sched_getaffinity(qemu.pid))
        isolate_helpers(groups, domain(str(last)))
        names = qemu.threads
        guest = {names["CPU 0/KVM"], names["CPU 1/KVM"]}
        assert tasks(group) == guest
        assert tasks(group / "housekeeping") == set(names.values()) - guest
        assert os.sched_getaffinity(names["IO mon_iothread"]) == {last}
        assert os.sched_getaffinity(names["CPU 0/KVM"]) != {last}
        # The launcher is found where it was, and a second time changes nothing.
        assert groups_of(qemu.pid, root=CPUSETS.parent).folder("cpuset") == group
        isolate_helpers(groups, domain(str(last)))
        assert tasks(group) == guest
        give_back(groups)
        assert tasks(group) == set(names.values())
        assert not (group / "housekeeping").exists()
        give_back(groups)

    def test_before_there_is_a_domain_only_the_group_is_made(self, qemu: Process, group: Path) -> None:
        groups = groups_of(qemu.pid, root=CPUSETS.parent)
        for found in (None, Domain({"Spec": {}})):
            isolate_helpers(groups, found)
            assert (group / "housekeeping").is_dir()
            assert tasks(group / "housekeeping") == set()

    def test_a_cpu_that_is_not_the_pods_is_one_clear_error(self, qemu: Process, group: Path) -> None:
        groups = groups_of(qemu.pid, root=CPUSETS.parent)
        for cpus in ("4000", "some"):
            with pytest.raises(AgentError, match=r"spec.domain.cpu.isolateEmulatorThread: helper threads"):
                isolate_helpers(groups, domain(cpus))
        assert tasks(group) == set(qemu.threads.values())


class TestVersion2:
    """Its files, as cgroups(7) has them: this machine may have none of that controller in version 2."""

    def test_the_group_is_threaded(self, tmp_path: Path) -> None:
        (tmp_path / "cgroup.subtree_control").touch()
        (tmp_path / "cgroup.threads").write_text("11\n12\n")
        for thread, name in (("11", "CPU 0/KVM"), ("12", "worker")):
            (tmp_path / "proc" / thread).mkdir(parents=True)
            (tmp_path / "proc" / thread / "comm").write_text(name + "\n")
        isolate_helpers(Groups(True, {"": tmp_path}), domain("3"), tmp_path / "proc")
        assert (tmp_path / "cgroup.subtree_control").read_text() == "+cpuset"
        inside = tmp_path / "housekeeping"
        assert {entry.name: entry.read_text() for entry in inside.iterdir()} == {
            "cgroup.type": "threaded",
            "cpuset.cpus": "3",
            "cgroup.threads": "12",
        }


@needs_root
class TestScheduling:
    def test_virtual_cpus_run_in_real_time(self, qemu: Process) -> None:
        schedule(machine(realtime={"mask": "0-3,^1"}), qemu.launcher)
        names = qemu.threads
        policies = {name: os.sched_getscheduler(thread) for name, thread in names.items()}
        assert policies.pop("CPU 0/KVM") == os.SCHED_FIFO
        assert os.sched_getparam(names["CPU 0/KVM"]).sched_priority == 1
        assert set(policies.values()) == {os.SCHED_OTHER}
        schedule(machine(realtime={}), qemu.launcher)
        assert os.sched_getscheduler(names["CPU 1/KVM"]) == os.SCHED_FIFO

    def test_the_guests_timer_runs_where_its_first_cpu_does(
        self, qemu: Process, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """A thread of the kernel's; another process stands in for it."""
        with subprocess.Popen(["sleep", "100"]) as timer:
            monkeypatch.setattr(threads, "timer_of", lambda _pid, _proc: timer.pid)
            one = max(os.sched_getaffinity(qemu.pid))
            os.sched_setaffinity(qemu.threads["CPU 0/KVM"], {one})
            schedule(machine(dedicatedCpuPlacement=True), qemu.launcher)
            assert os.sched_getaffinity(timer.pid) == {one}
            assert os.sched_getscheduler(timer.pid) == os.SCHED_OTHER
            schedule(machine(dedicatedCpuPlacement=True, realtime={}), qemu.launcher)
            assert os.sched_getscheduler(timer.pid) == os.SCHED_FIFO
            assert os.sched_getparam(timer.pid).sched_priority == 2
            timer.kill()

    def test_the_timer_is_known_by_the_pid_that_qemu_has_inside(self, tmp_path: Path) -> None:
        for pid, name in ((70, "qemu-kvm"), (80, "kvm-pit/70"), (90, "kvm-pit/12")):
            (tmp_path / str(pid)).mkdir()
            (tmp_path / str(pid) / "comm").write_text(name + "\n")
        (tmp_path / "70/status").write_text("Name:\tqemu-kvm\nNSpid:\t70\t12\n")
        assert threads.timer_of(70, tmp_path) == 90
        (tmp_path / "90/comm").write_text("other\n")
        assert threads.timer_of(70, tmp_path) is None
        assert threads.timer_of(71, tmp_path) is None

    def test_without_qemu_there_is_nothing_to_schedule(self) -> None:
        with subprocess.Popen(["sleep", "100"]) as process:
            with pytest.raises(AgentError, match="no QEMU process"):
                schedule(machine(realtime={}), process.pid)
            # One that has just ended is no error.
            schedule(machine(dedicatedCpuPlacement=True), process.pid)
            schedule(vmi("Running", spec={"domain": {"cpu": {"realtime": {}}}}), process.pid)
            process.kill()

    def test_threads_that_ended_meanwhile_are_passed_over(self, qemu: Process) -> None:
        gone = subprocess.Popen(["true"])
        gone.wait()
        one, other = threads.vcpus(qemu.pid).values()
        threads.run_in_real_time([gone.pid, one], 1)
        assert os.sched_getscheduler(one) == os.SCHED_FIFO
        threads.share_cpus(gone.pid, one)
        threads.share_cpus(other, gone.pid)

    def test_a_refusal_is_one_clear_error(self, qemu: Process, monkeypatch: pytest.MonkeyPatch) -> None:
        def refuse(*_arguments: object) -> None:
            raise PermissionError(1, "Operation not permitted")

        monkeypatch.setattr(os, "sched_setscheduler", refuse)
        with pytest.raises(AgentError, match=r"spec.domain.cpu.realtime: thread \d+ .*CAP_SYS_NICE"):
            schedule(machine(realtime={}), qemu.launcher)
        assert Path(f"/proc/{qemu.pid}").exists()


@pytest.mark.integration
@pytest.mark.skipif(
    os.geteuid() != 0 or shutil.which("qemu-system-x86_64") is None or not os.access("/dev/kvm", os.W_OK),
    reason="needs root, QEMU and KVM",
)
def test_a_real_qemu_in_a_pid_namespace_of_its_own() -> None:
    """Names of threads are QEMU's and the kernel's to choose: the timer's has the PID of that namespace."""
    qemu = [
        "qemu-system-x86_64",
        "-name",
        "guest=x,debug-threads=on",
        "-accel",
        "kvm",
        "-smp",
        "2",
        "-m",
        "32",
    ]
    quiet = ["-nodefaults", "-display", "none", "-monitor", "none", "-S"]
    with subprocess.Popen(
        ["unshare", "--pid", "--fork", "--kill-child", *qemu, *quiet], stderr=subprocess.DEVNULL
    ) as process:
        try:
            deadline = time.monotonic() + 60
            while (pid := threads.qemu_of(process.pid)) is None or len(threads.vcpus(pid)) < 2:
                assert process.poll() is None
                assert time.monotonic() < deadline
                time.sleep(0.1)
            found, timer = threads.vcpus(pid), threads.timer_of(pid)
            assert timer is not None
            one = max(os.sched_getaffinity(0))
            os.sched_setaffinity(found[0], {one})
            schedule(machine(dedicatedCpuPlacement=True, realtime={"mask": "0"}), process.pid)
            assert [os.sched_getscheduler(found[number]) for number in (0, 1)] == [
                os.SCHED_FIFO,
                os.SCHED_OTHER,
            ]
            assert os.sched_getparam(timer).sched_priority == 2
            assert os.sched_getaffinity(timer) == {one}
        finally:
            process.kill()


class TestMask:
    VCPUS: ClassVar[dict[int, int]] = {number: 100 + number for number in range(4)}

    @pytest.mark.parametrize(
        ("mask", "threads_"),
        [
            ("", [100, 101, 102, 103]),
            ("0", [100]),
            ("1-2, 3", [101, 102, 103]),
            ("0-3,^2", [100, 101, 103]),
            ("^1", []),
        ],
    )
    def test_cpus_are_chosen(self, mask: str, threads_: list[int]) -> None:
        assert threads.chosen(self.VCPUS, mask) == threads_

    @pytest.mark.parametrize("mask", ["a", "1-", "-1", "3-1", "^1-2", "1,,2", "0-99999999", "\u0663"])
    def test_what_is_no_mask_is_named(self, mask: str) -> None:
        with pytest.raises(AgentError, match=r"spec.domain.cpu.realtime.mask"):
            threads.chosen(self.VCPUS, mask)

    @given(st.text(alphabet="0123456789-^, ", max_size=12))
    def test_any_text_is_a_mask_or_an_error(self, mask: str) -> None:
        try:
            found = threads.chosen(self.VCPUS, mask)
        except AgentError:
            found = []
        assert set(found) <= set(self.VCPUS.values())
