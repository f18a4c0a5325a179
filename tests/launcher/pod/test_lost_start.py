"""A start that was lost with libvirt's daemon is undone and made again; one that goes on is left alone."""

from __future__ import annotations

import asyncio
import os
import subprocess
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from kvnode.launcher.pod import lost_start
from kvnode.launcher.pod.lost_start import LostStart
from kvnode.virt.errors import VirtError


@pytest.fixture(autouse=True)
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Give up soon."""
    monkeypatch.setattr(lost_start, "LOST_SECONDS", 0.1)
    monkeypatch.setattr(lost_start, "LOOK_SECONDS", 0.01)
    monkeypatch.setattr(lost_start, "ANSWER_SECONDS", 0.05)


@pytest.fixture
def ended() -> Iterator[int]:
    """The id of a process that is gone."""
    with subprocess.Popen(["true"]) as process:
        process.wait()
        yield process.pid


class Scene:
    """libvirt's daemon and its link, both played."""

    def __init__(self, directory: Path, pid: int | None) -> None:
        self.pid_file = directory / "ns_v.m.pid"
        if pid is not None:
            self.pid_file.write_text(f"{pid}")
        self.status_file = directory / "ns_v.m.xml"
        self.status_file.touch()
        self.active: bool | None = True
        """What libvirt says; None when it does not answer."""
        self.broken = False
        self.replaced = 0
        self.did: list[str] = []
        self.raw = self
        self._reconnected: list[Callable[[], None]] = []
        self.lost = LostStart(
            self,  # type: ignore[arg-type]
            self,  # type: ignore[arg-type]
            "ns_v.m",
            self.pid_file,
            start_again=self.start_again,
            on_settled=lambda: self.did.append("settled"),
        )

    def on_reconnected(self, callback: Callable[[], None]) -> None:
        self._reconnected.append(callback)

    async def call(self, function: Callable[..., Any], *arguments: Any) -> Any:
        if self.active is None:
            await asyncio.sleep(60)
        if self.broken:
            raise VirtError("asking", "the connection is broken")
        return function(*arguments)

    def lookupByName(self, _name: str) -> Scene:  # noqa: N802
        return self

    def isActive(self) -> int:  # noqa: N802
        return int(bool(self.active))

    def replace(self, between: Callable[[], None]) -> None:
        """The next daemon finds what the files say."""
        between()
        self.replaced += 1
        self.active = self.status_file.exists()

    async def start_again(self) -> None:
        self.did.append("started")

    async def reconnect(self) -> None:
        """The link has a new connection; wait until the look at the domain is over."""
        for callback in self._reconnected:
            callback()
        (look,) = (task for task in asyncio.all_tasks() if task.get_name() == "lost-start")
        await asyncio.wait_for(look, 60)


def play(scene: Callable[[], Scene], scenario: Callable[[Scene], Awaitable[None]]) -> Scene:
    """Play a scenario in an event loop."""

    async def body() -> Scene:
        made = scene()
        await scenario(made)
        made.lost.stop()
        return made

    return asyncio.run(body())


@pytest.mark.parametrize("says", [True, None])
def test_a_domain_that_stays_active_without_a_qemu_is_forgotten_and_started_again(
    tmp_path: Path, ended: int, says: bool | None
) -> None:
    async def scenario(scene: Scene) -> None:
        scene.active = says
        await scene.reconnect()
        assert scene.replaced == 1
        assert not scene.pid_file.exists()
        assert not scene.status_file.exists()
        assert scene.did == []
        assert scene.lost.under_way
        await scene.reconnect()
        assert scene.replaced == 1
        assert scene.did == ["started", "settled"]
        assert not scene.lost.under_way

    play(lambda: Scene(tmp_path, ended), scenario)


def test_so_is_one_whose_qemu_never_came_to_be(tmp_path: Path) -> None:
    scene = play(lambda: Scene(tmp_path, None), lambda scene: scene.reconnect())
    assert scene.replaced == 1


@pytest.mark.parametrize(("pid", "active"), [("own", True), ("ended", False), (None, False)])
def test_what_libvirt_says_is_believed_when_it_can_be(
    tmp_path: Path, ended: int, pid: str | None, active: bool
) -> None:
    number = {"own": os.getpid(), "ended": ended, None: None}[pid]

    async def scenario(scene: Scene) -> None:
        scene.active = active
        await scene.reconnect()

    scene = play(lambda: Scene(tmp_path, number), scenario)
    assert scene.replaced == 0
    assert scene.status_file.exists()
    assert scene.did == ["started", "settled"]


def test_a_start_that_takes_its_time_is_left_alone(tmp_path: Path) -> None:
    """It finds the domain shut off when the daemon is back; QEMU may take any time from then on."""

    async def scenario(scene: Scene) -> None:
        scene.active = False
        asyncio.get_running_loop().call_later(0.03, setattr, scene, "active", True)
        await scene.reconnect()

    assert play(lambda: Scene(tmp_path, None), scenario).replaced == 0


def test_a_connection_that_breaks_again_is_not_libvirts_word(tmp_path: Path) -> None:
    async def scenario(scene: Scene) -> None:
        scene.broken = True
        await scene.reconnect()

    assert play(lambda: Scene(tmp_path, None), scenario).replaced == 0


def test_what_cannot_be_started_again_is_told_all_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def fails(_self: Scene) -> None:
        raise VirtError("starting the guest", "no")

    monkeypatch.setattr(Scene, "start_again", fails)

    async def scenario(scene: Scene) -> None:
        scene.active = False
        await scene.reconnect()

    scene = play(lambda: Scene(tmp_path, None), scenario)
    assert scene.did == ["settled"]
    assert not scene.lost.under_way
