"""The process monitor's arithmetic, on processes that stand for QEMU."""

from __future__ import annotations

import asyncio
import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from kvnode.launcher.pod import qemu_process
from kvnode.launcher.pod.qemu_process import QemuProcess
from kvnode.launcher.qemu_files import is_alive
from tests.standalone.helpers import wait_until


@pytest.fixture(autouse=True)
def fast(monkeypatch: pytest.MonkeyPatch) -> None:
    """Look more often, but not while there is a process to wait for."""
    monkeypatch.setattr(qemu_process, "TICK_SECONDS", 0.05)
    monkeypatch.setattr(qemu_process, "IDLE_SECONDS", 600)


@pytest.fixture
def qemu() -> Iterator[subprocess.Popen[bytes]]:
    """A process that lives until it is ended."""
    with subprocess.Popen(["sleep", "60"]) as process:
        yield process
        process.kill()


class Case:
    """A follower, and what it did."""

    def __init__(self, directory: Path, *, grace: float = 60, timeout: float = 60) -> None:
        self.pid_file = directory / "ns_vm.pid"
        self.did: list[str] = []
        self.over = self.unwanted = False
        self.ran = True
        self.killable = True
        self.victim: subprocess.Popen[bytes] | None = None
        self.stop = asyncio.Event()
        self.process = QemuProcess(
            self.pid_file,
            start_timeout=timeout,
            grace=grace,
            on_stop=self.on_stop,
            kill=self.kill,
            has_run=lambda: self.ran,
            is_over=lambda: self.over,
            give_up=lambda: self.unwanted,
        )

    async def on_stop(self) -> None:
        """Note the mark."""
        self.did.append("marked")

    async def kill(self) -> bool:
        """End the process, if libvirt can be asked to."""
        self.did.append("kill")
        if self.killable and self.victim is not None:
            self.victim.kill()
            self.victim.wait()
        return self.killable

    def run(self, *steps: tuple[float, str]) -> float:
        """Follow, doing steps after some seconds each; returns how long it took."""

        async def play() -> float:
            began = time.monotonic()
            loop = asyncio.get_running_loop()
            for delay, step in steps:
                loop.call_later(delay, self.step, step)
            await asyncio.wait_for(self.process.follow(self.stop), 60)
            return time.monotonic() - began

        return asyncio.run(play())

    def step(self, name: str) -> None:
        """What happens meanwhile."""
        if name == "stop":
            self.stop.set()
        elif name == "end" and self.victim is not None:
            self.victim.kill()
            self.victim.wait()
        elif name == "appear" and self.victim is not None:
            self.pid_file.write_text(f"{self.victim.pid}")
        else:
            setattr(self, name, True)


@pytest.fixture
def case(tmp_path: Path, qemu: subprocess.Popen[bytes]) -> Case:
    """A follower of that process, which is there already."""
    made = Case(tmp_path)
    made.victim = qemu
    made.step("appear")
    return made


def test_it_ends_when_the_process_does(case: Case) -> None:
    case.run((0.2, "end"))
    assert case.did == []


def test_a_process_that_comes_late_is_found(tmp_path: Path, qemu: subprocess.Popen[bytes]) -> None:
    case = Case(tmp_path)
    case.victim = qemu
    case.run((0.2, "appear"), (0.5, "end"))
    assert case.process.pid == qemu.pid


def test_a_stop_marks_once_and_leaves_the_rest_to_the_agent(case: Case) -> None:
    case.run((0.1, "stop"), (0.2, "stop"), (0.6, "end"))
    assert case.did == ["marked"]


def test_after_the_grace_period_it_is_ended(tmp_path: Path, qemu: subprocess.Popen[bytes]) -> None:
    case = Case(tmp_path, grace=0.5)
    case.victim = qemu
    case.step("appear")
    assert case.run((0.1, "stop")) >= 0.5
    assert case.did == ["marked", "kill"]


def test_by_a_signal_where_libvirt_cannot_be_asked(tmp_path: Path, qemu: subprocess.Popen[bytes]) -> None:
    case = Case(tmp_path, grace=0.1)
    case.victim, case.killable = qemu, False
    case.step("appear")
    case.run((0.05, "stop"))
    assert case.did[:2] == ["marked", "kill"]
    assert qemu.wait(60) == -signal.SIGTERM


@pytest.mark.parametrize("step", ["stop", "over", "unwanted"])
def test_without_a_process_there_is_nothing_to_wait_for(tmp_path: Path, step: str) -> None:
    Case(tmp_path).run((0.1, step))


def test_a_process_that_never_comes(tmp_path: Path) -> None:
    assert Case(tmp_path, timeout=0.3).run() >= 0.3


def test_a_pid_file_with_something_else(tmp_path: Path) -> None:
    case = Case(tmp_path, timeout=0.3)
    case.pid_file.write_text("not a number")
    case.run()
    assert case.process.pid == 0


def test_a_zombie_counts_as_gone(case: Case) -> None:
    assert case.victim is not None
    case.victim.send_signal(signal.SIGKILL)  # not waited for
    pid = case.victim.pid
    wait_until(lambda: not is_alive(pid), 60, "the process's end")
    case.run()


def test_a_process_that_ended_before_the_guest_was_started_is_no_end(
    tmp_path: Path, qemu: subprocess.Popen[bytes]
) -> None:
    """There is a file of it still, and there may be another start."""
    case = Case(tmp_path)
    case.victim, case.ran = qemu, False
    case.step("appear")
    assert case.run((0.1, "end"), (1.5, "over")) >= 1.5


async def until(condition: Callable[[], bool]) -> None:
    """Wait for a condition."""
    async with asyncio.timeout(60):
        while not condition():
            await asyncio.sleep(0.02)


def test_a_second_start_is_followed(tmp_path: Path) -> None:
    case = Case(tmp_path)
    case.ran = False
    with subprocess.Popen(["sleep", "60"]) as first, subprocess.Popen(["sleep", "60"]) as second:

        async def play() -> None:
            case.pid_file.write_text(f"{first.pid}")
            following = asyncio.ensure_future(case.process.follow(case.stop))
            await until(lambda: case.process.pid == first.pid)
            first.kill()
            first.wait()
            await until(lambda: case.process.pid == 0)
            case.pid_file.write_text(f"{second.pid}")
            case.ran = True
            await until(lambda: case.process.pid == second.pid)
            assert not following.done()
            second.kill()
            second.wait()
            await asyncio.wait_for(following, 60)

        try:
            asyncio.run(play())
        finally:
            first.kill()
            second.kill()
