"""A libvirt daemon that does not answer is told of once, and so is its return."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from typing import Any

import libvirt
import pytest

from kvnode.launcher.pod import link
from kvnode.launcher.pod.link import Link
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
    return state


async def until(condition: Callable[[], bool]) -> None:
    """Wait for a condition."""
    async with asyncio.timeout(20):
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
    assert caplog.text == ""


def test_one_that_never_answers_is_an_error(daemon: dict[str, bool]) -> None:
    async def play() -> None:
        made = Link("test:///", asyncio.get_running_loop())
        try:
            with pytest.raises(VirtError, match="Connection refused"):
                await made.start(0.3)
        finally:
            await made.stop()

    assert not daemon["there"]
    asyncio.run(play())
