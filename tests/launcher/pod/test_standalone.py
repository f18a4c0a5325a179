"""A guest that nobody but the launcher starts: as often as its daemons die over it, and no oftener."""

from __future__ import annotations

import asyncio
import json
import os
import signal
from dataclasses import dataclass
from pathlib import Path

import pytest

from kvnode.launcher.errors import LauncherError
from kvnode.launcher.manager.instance import Instance
from kvnode.launcher.pod import standalone
from kvnode.launcher.pod.standalone import start_guest
from tests.conftest import Guest
from tests.launcher.pod.pod import launcher_pod, pod_vmi
from tests.standalone.helpers import wait_for_text, wait_until


@dataclass
class Daemon:
    """One of libvirt's."""

    starts: int = 1
    pid: int = 7


class Scene:
    """A start that fails so many times, and a daemon that dies the first time."""

    def __init__(self, failures: int, *, dies: bool) -> None:
        self.daemons = [Daemon(), Daemon()]
        self.failures = failures
        self.dies = dies
        self.tries = 0

    async def sync(self, vmi: Instance) -> None:
        assert vmi.name == "a"
        self.tries += 1
        if self.tries > self.failures:
            return
        if self.dies:
            self.daemons[1].pid = 0
        raise OSError("the socket is not there")

    def play(self) -> None:
        asyncio.run(start_guest(self.sync, self.daemons))  # type: ignore[arg-type]


@pytest.fixture(autouse=True)
def a_vmi(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(standalone.VARIABLE, json.dumps({"metadata": {"name": "a"}}))
    monkeypatch.setattr(standalone, "PAUSE_SECONDS", 0)


def test_without_a_vmi_nothing_is_started(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(standalone.VARIABLE)
    scene = Scene(0, dies=False)
    scene.play()
    assert scene.tries == 0


@pytest.mark.parametrize("text", ["{", "[]", "[" * 100_000, "\udcff"])
def test_what_is_no_vmi_is_refused(monkeypatch: pytest.MonkeyPatch, text: str) -> None:
    monkeypatch.setenv(standalone.VARIABLE, text)
    with pytest.raises(LauncherError, match=r"^STANDALONE_VMI: [^\n]*$"):
        Scene(0, dies=False).play()


def test_it_is_started_again_when_a_daemon_died_over_it() -> None:
    scene = Scene(3, dies=True)
    scene.play()
    assert scene.tries == 4


def test_another_failure_is_the_end() -> None:
    scene = Scene(1, dies=False)
    with pytest.raises(LauncherError, match=r"STANDALONE_VMI: the socket is not there"):
        scene.play()
    assert scene.tries == 1


def test_a_daemon_that_keeps_dying_is_the_end() -> None:
    scene = Scene(1000, dies=True)
    with pytest.raises(LauncherError, match="the socket is not there"):
        scene.play()
    assert scene.tries == standalone.ATTEMPTS


@pytest.mark.integration
@pytest.mark.parametrize("role", ["virtlogd", "virtqemud"])
def test_a_daemon_that_is_killed_over_the_start(guest: Guest, libvirt_cache: Path, role: str) -> None:
    environment = {"STANDALONE_VMI": json.dumps(pod_vmi())}
    with launcher_pod(guest, libvirt_cache, "--standalone", environment=environment) as pod:
        wait_until(pod.socket.exists, 60, "the socket: the guest is started next")
        os.kill(pod.pids()[role], signal.SIGKILL)
        if role == "virtqemud":  # its serial log ends with the log daemon
            wait_for_text(pod.serial, "kvnode-guest: up after")
        else:
            wait_until(lambda: "the guest agent is there" in pod.log, 120, "the guest")
        pids = pod.pids()
        pod.terminate()
        assert pod.wait(60) == 0
        pod.assert_nothing_left(pids)
