"""A libvirt daemon that does not answer is told of once, and so is its return."""

from __future__ import annotations

import asyncio
import logging
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

import libvirt
import pytest

from kvnode.launcher.pod import link
from kvnode.launcher.pod.link import Link
from kvnode.virt import connection
from kvnode.virt.errors import VirtError


class Refused(libvirt.libvirtError):  # type: ignore[misc]
    """libvirt's error for a daemon that is not there."""

    def __init__(self) -> None:
        Exception.__init__(self, "Connection refused")


class Raw:
    """A connection that takes any call."""

    def __getattr__(self, _name: str) -> Callable[..., int]:
        return lambda *_arguments: 1


@pytest.fixture
def daemon(monkeypatch: pytest.MonkeyPatch) -> dict[str, bool]:
    """A daemon that answers when ``there``."""
    state = {"there": False}

    def open_connection(_uri: str) -> Any:
        if not state["there"]:
            raise Refused
        return Raw()

    monkeypatch.setattr(libvirt, "open", open_connection)
    monkeypatch.setattr(link, "SILENT_SECONDS", 0.1)
    monkeypatch.setattr(link, "ATTEMPT_SECONDS", 0.2)
    monkeypatch.setattr(link, "PAUSE_SECONDS", 0.01)
    # A thread that is slow to begin on a busy machine is no daemon that says nothing.
    monkeypatch.setattr(connection, "_LOOK_SECONDS", 20)
    return state


async def until(condition: Callable[[], bool]) -> None:
    """Wait for a condition."""
    async with asyncio.timeout(60):
        while not condition():
            await asyncio.sleep(0.02)


def test_it_is_said_once_that_the_daemon_is_silent_and_once_that_it_answers(
    daemon: dict[str, bool], caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)

    async def play() -> None:
        made = Link("test:///", asyncio.get_running_loop())
        starting = asyncio.ensure_future(made.start(60))
        await until(lambda: "does not answer yet (Connection refused)" in caplog.text)
        await asyncio.sleep(0.3)
        daemon["there"] = True
        await starting
        assert caplog.text.count("does not answer yet") == 1
        assert caplog.text.count("the libvirt daemon answers") == 1

        caplog.clear()
        daemon["there"] = False
        made._broken.set()
        await until(lambda: "does not answer yet" in caplog.text)
        await asyncio.sleep(1)  # some attempts
        daemon["there"] = True
        await until(lambda: "connected to the libvirt daemon again" in caplog.text)
        assert caplog.text.count("does not answer yet") == 1
        assert caplog.text.count("the libvirt daemon answers") == 1
        assert len([one for one in caplog.records if one.levelno >= logging.WARNING]) == 2
        await made.stop()

    asyncio.run(play())


def test_nothing_is_said_of_a_daemon_that_takes_a_moment(
    daemon: dict[str, bool], caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    caplog.set_level(logging.INFO)
    monkeypatch.setattr(link, "SILENT_SECONDS", 60)

    async def play() -> None:
        made = Link("test:///", asyncio.get_running_loop())
        asyncio.get_running_loop().call_later(0.2, daemon.__setitem__, "there", True)
        await made.start(60)
        await made.stop()

    asyncio.run(play())
    assert [one for one in caplog.records if one.name.startswith("kvnode")] == []


def test_one_that_never_answers_is_an_error(daemon: dict[str, bool]) -> None:
    async def play() -> None:
        made = Link("test:///", asyncio.get_running_loop())
        try:
            with pytest.raises(VirtError, match="Connection refused"):
                await made.start(2)
        finally:
            await made.stop()

    assert not daemon["there"]
    asyncio.run(play())


class Stopped:
    """A daemon that takes connections and answers none before it is continued."""

    def __init__(self) -> None:
        self.taken = 0
        self.closed = 0
        self.on = threading.Event()

    def open(self, _uri: str) -> Stopped:
        self.taken += 1
        self.on.wait(60)
        return self

    def close(self) -> int:
        self.closed += 1
        return 0

    def __getattr__(self, _name: str) -> Callable[..., int]:
        return lambda *_arguments: 1


@pytest.fixture
def stopped(daemon: dict[str, bool], monkeypatch: pytest.MonkeyPatch) -> Iterator[Stopped]:
    """A daemon that is stopped."""
    assert not daemon["there"]
    made = Stopped()
    monkeypatch.setattr(libvirt, "open", made.open)
    monkeypatch.setattr(connection, "_LOOK_SECONDS", 0.1)
    yield made
    made.on.set()


def test_a_daemon_that_takes_a_connection_and_says_nothing_is_an_error_in_time(stopped: Stopped) -> None:
    async def play() -> None:
        made = Link("test:///", asyncio.get_running_loop())
        with pytest.raises(VirtError, match="says nothing"):
            await made.start(0.3)
        await made.stop()
        stopped.on.set()
        await until(lambda: stopped.closed == 1)  # what comes when nobody wants it any more

    asyncio.run(play())


def test_a_daemon_that_stays_silent_is_held_for_stuck(
    stopped: Stopped, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    caplog.set_level(logging.INFO)
    monkeypatch.setattr(link, "ATTEMPT_SECONDS", 0.6)
    monkeypatch.setattr(link, "STUCK_SECONDS", 1.5)  # some attempts

    async def play() -> None:
        made = Link("test:///", asyncio.get_running_loop())
        stuck: list[float] = []
        made.on_stuck = lambda: stuck.append(time.monotonic())
        stopped.on.set()
        await made.start(60)
        stopped.on.clear()
        before = stopped.taken
        made._broken.set()
        await until(lambda: bool(stuck))
        assert stopped.taken == before + 1, "no thread is left behind with each attempt"
        stopped.on.set()
        await until(lambda: "connected to the libvirt daemon again" in caplog.text)
        assert caplog.text.count("does not answer yet (it takes the connection, and says nothing)") == 1
        await made.stop()

    asyncio.run(play())


def test_a_daemon_that_is_not_there_is_not_stuck(
    daemon: dict[str, bool], monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is being started, and ending it would not help."""
    monkeypatch.setattr(link, "STUCK_SECONDS", 0.1)

    async def play() -> None:
        made = Link("test:///", asyncio.get_running_loop())
        stuck: list[None] = []
        made.on_stuck = lambda: stuck.append(None)
        with pytest.raises(VirtError):
            await made.start(1.5)
        await made.stop()
        assert not stuck

    assert not daemon["there"]
    asyncio.run(play())
