"""The daemons' configuration: the image's, and what depends on the pod."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from kvnode.launcher import paths
from kvnode.launcher.daemons import Programs
from kvnode.launcher.errors import LauncherError
from kvnode.launcher.pod import libvirt_files
from kvnode.launcher.pod.libvirt_files import log_filters, write_libvirt_files
from kvnode.launcher.pod.options import PodOptions

REQUIRED = ["--name", "vm", "--namespace", "ns", "--uid", "u-1"]
MODULAR = Programs(
    "/usr/sbin/virtlogd", "/usr/sbin/virtqemud", "virtqemud.conf", Path("/run/libvirt/virtqemud-sock")
)
MONOLITHIC = Programs(
    "/usr/sbin/virtlogd", "/usr/sbin/libvirtd", "libvirtd.conf", Path("/run/libvirt/libvirt-sock")
)


@pytest.fixture
def etc(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """/etc/libvirt; the other directories are beside it."""
    for name, attribute in (("etc", "LIBVIRT_CONFIG"), ("run", "LIBVIRT_RUN"), ("private", "PRIVATE")):
        (tmp_path / name).mkdir()
        monkeypatch.setattr(paths, attribute, tmp_path / name)
    for variable in ("VIRTIOFSD_DEBUG_LOGS", "SHARED_FILESYSTEM_PATHS", "LIBVIRT_DEBUG_LOGS"):
        monkeypatch.delenv(variable, raising=False)
    return tmp_path / "etc"


def test_as_root_the_images_file_is_added_to_once(etc: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (etc / "qemu.conf").write_text('user = "qemu"')
    monkeypatch.setenv("VIRTIOFSD_DEBUG_LOGS", "1")
    monkeypatch.setenv("SHARED_FILESYSTEM_PATHS", "/a:/b")
    for _ in range(2):  # a container that starts again
        files = write_libvirt_files(PodOptions.read(REQUIRED), MODULAR)
    lines = (etc / "qemu.conf").read_text().splitlines()
    assert lines[0] == 'user = "qemu"'
    assert lines.count("virtiofsd_debug = 1") == 1
    assert lines.count('shared_filesystems = [ "/a", "/b" ]') == 1
    assert files.uri == "qemu+unix:///system?socket=/run/libvirt/virtqemud-sock"


def test_without_root_it_is_copied(etc: Path) -> None:
    (etc / "qemu.conf").write_text('user = "qemu"\n')
    files = write_libvirt_files(PodOptions.read([*REQUIRED, "--run-as-nonroot"]), MODULAR)
    assert (etc / "qemu.conf").read_text() == 'user = "qemu"\n'
    assert (etc.parent / "private/libvirt/qemu.conf").read_text().startswith('user = "qemu"\n')
    assert files.uri == "qemu+unix:///session?socket=/run/libvirt/virtqemud-sock"


def test_an_image_without_files_gets_them(etc: Path) -> None:
    files = write_libvirt_files(PodOptions.read(REQUIRED), MONOLITHIC)
    assert 'stdio_handler = "logd"' in (etc / "qemu.conf").read_text()
    assert files.daemon_config == etc.parent / "run/virtqemud.conf"
    assert 'auth_unix_rw = "none"' in files.daemon_config.read_text()
    assert files.log_daemon() == ["/usr/sbin/virtlogd", "-f", str(etc.parent / "run/virtlogd.conf")]


def test_filters_that_were_asked_for_reach_the_file_whole(etc: Path) -> None:
    options = PodOptions.read([*REQUIRED, "--libvirt-log-filters", '3:remote 1:*"\nuser = "root'])
    files = write_libvirt_files(options, MODULAR)
    assert files.daemon_config.read_text().splitlines()[-1] == 'log_filters = "3:remote 1:* user = root"'


@pytest.mark.parametrize(
    ("environment", "ending"),
    [
        ({}, None),
        ({"VIRT_LAUNCHER_LOG_VERBOSITY": "4"}, None),
        ({"VIRT_LAUNCHER_LOG_VERBOSITY": "loud"}, None),
        ({"VIRT_LAUNCHER_LOG_VERBOSITY": "5"}, "3:conf.domain_addr 1:*"),
        ({"VIRT_LAUNCHER_LOG_VERBOSITY": "6"}, "3:qemu.qemu_monitor 1:*"),
        ({"VIRT_LAUNCHER_LOG_VERBOSITY": "7"}, "3:cpu.cpu 1:*"),
        ({"VIRT_LAUNCHER_LOG_VERBOSITY": "8"}, "3:access 1:*"),
        ({"LIBVIRT_DEBUG_LOGS": "1"}, "3:access 1:*"),
    ],
)
def test_the_more_is_logged_the_less_is_left_out(environment: dict[str, str], ending: str | None) -> None:
    filters = log_filters("", environment)
    assert filters.endswith(ending) if ending else filters == ""


def test_the_default_user_is_one_that_there_is() -> None:
    assert libvirt_files._qemu_user() in Path("/etc/passwd").read_text()


@pytest.mark.parametrize(
    ("attribute", "complaint"),
    [
        ("geteuid", "user 4000000001 needs an entry in /etc/passwd"),
        ("getegid", "group 4000000001 needs an entry in /etc/group"),
    ],
)
def test_a_user_without_a_name_is_refused_at_once(
    etc: Path, monkeypatch: pytest.MonkeyPatch, attribute: str, complaint: str
) -> None:
    """libvirt would close each connection, and the launcher would wait for an answer."""
    (etc / "qemu.conf").write_text('user = "qemu"\n')
    monkeypatch.setattr(os, attribute, lambda: 4_000_000_001)
    with pytest.raises(LauncherError, match=complaint):
        write_libvirt_files(PodOptions.read(REQUIRED), MODULAR)
