"""The launcher of the standalone mode brings the guest up whatever its libvirt daemon dies of."""

from __future__ import annotations

import json
import os
import socket
import threading
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from kvnode.launcher import main, paths
from kvnode.launcher.errors import LauncherError
from kvnode.launcher.main import Launcher
from kvnode.launcher.status import Status
from kvnode.virt.connection import Connection
from kvnode.virt.domain import DomainState
from kvnode.virt.errors import VirtError


class Daemon:
    """A libvirt whose daemon dies over the first start and leaves what it wrote behind."""

    def __init__(self, run: Path, *, qemu: int) -> None:
        self.files = run / "qemu"
        self.files.mkdir()
        self.qemu = qemu
        self.did: list[str] = []
        self.fake = self

    @property
    def held(self) -> Path:
        return self.files / "ns_vm.xml"

    def reopen(self, _timeout: float) -> None:
        self.did.append("connect")

    def answers(self) -> bool:
        return False

    def replace(self, between: Callable[[], None]) -> None:
        between()
        self.did.append("replaced")


class Domain:
    """What the launcher takes for the domain."""

    def __init__(self, connection: Any, _name: str) -> None:
        self.daemon: Daemon = connection

    def state(self) -> DomainState:
        return DomainState(self.daemon.held.exists(), False, "")

    def define(self, _xml: str) -> None:
        self.daemon.did.append("define")

    def start(self) -> None:
        self.daemon.did.append("start")
        if self.daemon.did.count("start") == 1:
            self.daemon.held.touch()
            (self.daemon.files / "ns_vm.pid").write_text(f"{self.daemon.qemu}")
            raise VirtError("starting the guest", "end of file")


def bring_up(monkeypatch: pytest.MonkeyPatch, directory: Path, qemu: int) -> list[str]:
    """Have a guest brought up whose first start is cut short; returns what was done."""
    monkeypatch.setattr(paths, "LIBVIRT_RUN", directory)
    monkeypatch.setattr(main, "Domain", Domain)
    monkeypatch.setattr(main, "LOST_SECONDS", 0.1)
    monkeypatch.setattr(Launcher, "_adapted", lambda _self, _connection: "<domain/>")
    daemon = Daemon(directory, qemu=qemu)
    launcher = Launcher(
        cast("Any", SimpleNamespace()), Status(directory / "status.json", uid="", created="", domain="ns_vm")
    )
    log_daemon = SimpleNamespace(starts=1)
    launcher._daemons = {"virtqemud": cast("Any", daemon), "virtlogd": cast("Any", log_daemon)}
    with socket.socket(socket.AF_UNIX) as log_socket:
        log_socket.bind(str(directory / "virtlogd-sock"))
        log_socket.listen()
        launcher._bring_up(cast("Connection", daemon), directory / "virtlogd-sock")
    return daemon.did


class LogDaemon:
    """A log daemon that is not there yet when the guest is first started, or dies over that."""

    def __init__(self, directory: Path) -> None:
        self.path = directory / "virtlogd-sock"
        self.starts = 1
        self.socket = socket.socket(socket.AF_UNIX)
        self.did: list[str] = []

    def listen(self) -> None:
        self.socket.bind(str(self.path))
        self.socket.listen()

    def die(self) -> None:
        self.socket.close()

    def come_back(self) -> None:
        self.path.unlink()
        self.socket = socket.socket(socket.AF_UNIX)
        self.starts += 1
        self.listen()

    def domain(self, _connection: Any, _name: str) -> Any:
        return SimpleNamespace(
            define=self.did.append, start=self.start, state=lambda: DomainState(False, False, "")
        )

    def start(self) -> None:
        self.did.append("start")
        if self.did.count("start") == 1:
            self.die()
            threading.Timer(0.3, self.come_back).start()
            raise VirtError("starting the guest", "Failed to connect socket")


def test_a_guest_waits_for_a_log_daemon(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    log_daemon = LogDaemon(tmp_path)
    monkeypatch.setattr(main, "Domain", log_daemon.domain)
    monkeypatch.setattr(main, "CONNECT_SECONDS", 60.0)
    monkeypatch.setattr(Launcher, "_adapted", lambda _self, _connection: "define")
    connection = SimpleNamespace(
        reopen=lambda _timeout: log_daemon.did.append("connect"), answers=lambda: True
    )
    launcher = Launcher(
        cast("Any", SimpleNamespace()), Status(tmp_path / "status.json", uid="", created="", domain="ns_vm")
    )
    launcher._daemons = {"virtlogd": cast("Any", log_daemon)}
    monkeypatch.setattr(Launcher, "_undo_lost_start", lambda *_: None)
    threading.Timer(0.3, log_daemon.listen).start()
    launcher._bring_up(cast("Connection", connection), log_daemon.path)
    log_daemon.socket.close()
    assert log_daemon.did == ["connect", "define", "start"] * 2
    monkeypatch.setattr(main, "CONNECT_SECONDS", 0.1)
    with pytest.raises(LauncherError, match=r"\(virtlogd\) takes no connections"):
        launcher._bring_up(cast("Connection", connection), log_daemon.path)


def test_a_start_that_was_lost_is_undone_and_made_again(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    did = bring_up(monkeypatch, tmp_path, qemu=0)
    assert did == ["connect", "define", "start", "connect", "replaced", "connect", "define", "start"]


def test_a_guest_that_runs_is_left_alone(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    did = bring_up(monkeypatch, tmp_path, qemu=os.getpid())
    assert did == ["connect", "define", "start", "connect"]


CRASH = DomainState(False, True, "QEMU was killed or crashed")
END = DomainState(False, False, "the guest shut down")


@pytest.mark.parametrize(
    ("end", "panicked", "out_of_memory", "outcome"),
    [
        (CRASH, False, True, ("Failed", "OutOfMemory", "QEMU was killed: out of memory")),
        (CRASH, False, False, ("Failed", "QemuDied", "QEMU was killed or crashed")),
        (CRASH, True, True, ("Failed", "GuestPanicked", "the guest panicked")),
        (END, False, True, ("Succeeded", "GuestShutdown", "the guest shut down by itself")),
    ],
)
def test_how_a_guest_ended(
    tmp_path: Path, end: DomainState, panicked: bool, out_of_memory: bool, outcome: tuple[str, str, str]
) -> None:
    status = Status(tmp_path / "status.json", uid="", created="", domain="ns_vm")
    launcher = Launcher(cast("Any", SimpleNamespace()), status)
    launcher._oom = cast("Any", SimpleNamespace(killed=lambda: out_of_memory))
    follower = SimpleNamespace(panicked=panicked, destroyed="", stopping=False)
    assert launcher._conclude(cast("Any", follower), end) == (0 if outcome[0] == "Succeeded" else 1)
    told = json.loads((tmp_path / "status.json").read_text())
    assert (told["phase"], told["reason"]) == outcome[:2]
    assert told["message"].startswith(outcome[2])
