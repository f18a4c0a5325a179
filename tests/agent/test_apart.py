"""Work on storage that may hang."""

from __future__ import annotations

import asyncio
import threading

import pytest

from kvnode.agent import apart
from kvnode.agent.apart import Apart
from kvnode.agent.errors import AgentError
from tests.kube.loops import real_time, until


def fail() -> None:
    raise FileNotFoundError("played")


@real_time
async def test_it_gives_what_the_work_gives_or_raises() -> None:
    one = Apart()
    assert await one.run("u1", "files", lambda: 7) == 7
    with pytest.raises(FileNotFoundError, match="played"):
        await one.run("u1", "files", fail)
    assert await one.run("u1", "files", threading.current_thread) is not threading.current_thread()


@real_time
async def test_what_hangs_is_given_up_and_not_begun_again_and_holds_nobody_else_up(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(apart, "LONGEST", 0.2)
    one, storage = Apart(), threading.Event()
    begun: list[threading.Thread] = []

    def hang() -> int:
        begun.append(threading.current_thread())
        storage.wait(60)
        return 7

    many = [f"u{number}" for number in range(40)]
    given_up = await asyncio.gather(*(one.run(uid, "files", hang) for uid in many), return_exceptions=True)
    assert all(isinstance(error, AgentError) for error in given_up)
    assert "files: has not ended within 0.2 s; the storage of a volume may hang" in str(given_up[0])
    monkeypatch.setattr(apart, "LONGEST", 60.0)  # for what does not hang, on a busy machine
    with pytest.raises(AgentError, match="files: has not ended yet"):
        await one.run("u1", "files", hang)
    assert len(begun) == 40
    assert all(thread.daemon for thread in begun), "nor is the agent's end"
    assert await one.run("another", "files", lambda: 8) == 8
    assert await asyncio.to_thread(lambda: 9) == 9

    storage.set()
    await until(lambda: not any(thread.is_alive() for thread in begun))
    assert await one.run("u1", "files", hang) == 7


@real_time
async def test_what_fails_after_it_was_given_up_is_nobody_s_any_more(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(apart, "LONGEST", 0.01)
    one, storage = Apart(), threading.Event()

    def hang() -> None:
        storage.wait(60)
        fail()

    with pytest.raises(AgentError):
        await one.run("u1", "files", hang)
    storage.set()
    monkeypatch.setattr(apart, "LONGEST", 60.0)

    async def again() -> int:
        while True:
            try:
                return await one.run("u1", "files", lambda: 7)
            except AgentError:
                await asyncio.sleep(0.01)

    assert await again() == 7
