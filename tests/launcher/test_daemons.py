"""The daemons: found, configured, started again when they end."""

from __future__ import annotations

import os
import signal
import time
from pathlib import Path

import pytest

from kvnode.launcher import daemons, paths
from kvnode.launcher.daemons import Programs, Supervised, write_configuration
from kvnode.launcher.errors import LauncherError
from tests.standalone.helpers import alive, wait_until


def program(directory: Path, name: str, script: str = "sleep 60") -> None:
    """Make a program."""
    path = directory / name
    path.write_text(f"#!/bin/sh\nexec {script}\n")
    path.chmod(0o755)


def test_virtqemud_is_taken_before_libvirtd(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    for name in ("virtlogd", "libvirtd", "virtqemud"):
        program(tmp_path, name)
    found = Programs.find()
    assert (found.daemon, found.config) == (str(tmp_path / "virtqemud"), "virtqemud.conf")
    assert found.uri == "qemu+unix:///system?socket=/var/run/libvirt/virtqemud-sock"
    (tmp_path / "virtqemud").unlink()
    monkeypatch.setattr(daemons.shutil, "which", lambda name, **_: _only(tmp_path, name))
    found = Programs.find()
    assert (found.daemon, found.config) == (str(tmp_path / "libvirtd"), "libvirtd.conf")
    (tmp_path / "libvirtd").unlink()
    with pytest.raises(LauncherError, match="neither virtqemud nor libvirtd is installed"):
        Programs.find()
    (tmp_path / "virtlogd").unlink()
    with pytest.raises(LauncherError, match="virtlogd is not installed"):
        Programs.find()


def _only(directory: Path, name: str) -> str | None:
    path = directory / name
    return str(path) if path.exists() else None


@pytest.mark.parametrize("huge_pages", [False, True])
def test_the_configuration(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, huge_pages: bool) -> None:
    monkeypatch.setattr(paths, "LIBVIRT_CONFIG", tmp_path)
    write_configuration(Programs("virtlogd", "libvirtd", "libvirtd.conf", Path("/s")), huge_pages)
    qemu = (tmp_path / "qemu.conf").read_text()
    assert 'user = "root"' in qemu
    assert "cgroup_controllers = [ ]" in qemu
    assert ('hugetlbfs_mount = "/dev/hugepages"' in qemu) == huge_pages
    assert 'auth_unix_rw = "none"' in (tmp_path / "libvirtd.conf").read_text()
    assert (tmp_path / "virtlogd.conf").exists()


def test_a_daemon_that_ends_is_started_again_until_it_is_stopped(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(daemons, "RESTART_SECONDS", 0.05)
    daemon = Supervised("sleeper", ["sleep", "60"], dict(os.environ))
    first = daemon.pid
    os.kill(first, signal.SIGKILL)
    wait_until(lambda: daemon.pid != first, 60, "another process")
    second = daemon.pid
    assert alive(second)
    daemon.stop()
    assert not alive(second)
    time.sleep(0.2)
    assert daemon.pid == second, "it is not started after its stop"


def test_a_daemon_that_does_not_start_is_named() -> None:
    with pytest.raises(LauncherError, match="/no/such/daemon does not start: No such file or directory"):
        Supervised("none", ["/no/such/daemon"], {})
