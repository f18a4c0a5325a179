"""Daemons are started again, and ended for good."""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

from kvnode.launcher.errors import LauncherError
from kvnode.launcher.pod import supervise
from kvnode.launcher.pod.supervise import Supervised
from tests.standalone.helpers import alive


@pytest.fixture(autouse=True)
def fast(monkeypatch: pytest.MonkeyPatch) -> None:
    """Start again soon."""
    monkeypatch.setattr(supervise, "RESTART_SECONDS", 0.05)
    monkeypatch.setattr(supervise, "STOP_SECONDS", 0.5)


def play(daemon: Supervised, scenario: Callable[[], Awaitable[None]]) -> None:
    """Play a scenario with the daemon started."""

    async def body() -> None:
        async with asyncio.timeout(60):
            await daemon.start()
            try:
                await scenario()
            finally:
                await daemon.stop()

    asyncio.run(body())


async def until(condition: Callable[[], bool]) -> None:
    """Wait for a condition."""
    while not condition():
        await asyncio.sleep(0.02)


def test_one_that_is_killed_is_started_again_each_time() -> None:
    daemon = Supervised("sleeper", ["sleep", "60"])

    async def scenario() -> None:
        for number in (2, 3, 4):
            os.kill(daemon.pid, signal.SIGKILL)
            await until(lambda n=number: daemon.starts == n and daemon.pid)
            assert alive(daemon.pid)

    play(daemon, scenario)
    assert daemon.pid == 0


def test_one_that_does_not_stay_is_started_again_and_again() -> None:
    daemon = Supervised("leaver", ["false"])
    play(daemon, lambda: until(lambda: daemon.starts > 3))


def test_stopping_ends_it_even_when_it_is_deaf(tmp_path: Path) -> None:
    ready = tmp_path / "ready"
    daemon = Supervised("deaf", ["sh", "-c", f"trap '' TERM; touch {ready}; while :; do sleep 0.1; done"])
    pids = []

    async def scenario() -> None:
        await until(ready.exists)
        pids.append(daemon.pid)

    play(daemon, scenario)
    assert not alive(pids[0])


def test_one_that_is_not_there_is_said_at_once() -> None:
    with pytest.raises(LauncherError, match="/no/such/daemon does not start"):
        play(Supervised("nobody", ["/no/such/daemon"]), lambda: asyncio.sleep(0))
