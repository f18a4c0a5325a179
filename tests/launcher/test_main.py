"""The launcher of the standalone mode brings the guest up whatever its libvirt daemon dies of."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from kvnode.launcher import main, paths
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
    launcher._daemons = {"virtqemud": cast("Any", daemon)}
    launcher._bring_up(cast("Connection", daemon))
    return daemon.did


def test_a_start_that_was_lost_is_undone_and_made_again(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    did = bring_up(monkeypatch, tmp_path, qemu=0)
    assert did == ["connect", "define", "start", "connect", "replaced", "connect", "define", "start"]


def test_a_guest_that_runs_is_left_alone(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    did = bring_up(monkeypatch, tmp_path, qemu=os.getpid())
    assert did == ["connect", "define", "start", "connect"]
