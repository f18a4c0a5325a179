"""How often launchers are greeted and called, and that none waits for another."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Iterable
from datetime import UTC, datetime
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from kvnode.agent import rounds as module
from kvnode.agent.domains import DomainStore
from kvnode.agent.ghost import Ghost
from kvnode.agent.rounds import CALL, RESYNC, Rounds
from kvnode.agent.watchdog import PERIOD, TIMEOUT
from kvnode.rpc.errors import RpcError
from tests.kube.loops import virtual_time
from tests.kube.support import background


class Launchers:
    """Launchers whose socket is ``/UID``, some of which hang."""

    def __init__(self, count: int, monkeypatch: pytest.MonkeyPatch) -> None:
        self.ghosts = [Ghost("default", f"vm-{n}", f"uid-{n}", f"/uid-{n}") for n in range(count)]
        self.greeted: Counter[str] = Counter()
        self.called: Counter[str] = Counter()
        self.asked: Counter[str] = Counter()
        self.hung: set[str] = set()
        self.lost: list[str] = []
        queue: Any = SimpleNamespace(add=lambda _key: None, forget=lambda _key: None)
        self.domains = DomainStore(queue)
        records: Any = self
        launchers: Any = SimpleNamespace(known=self.known, open=self.open)
        clock = asyncio.get_running_loop().time
        self.rounds = Rounds(launchers, records, self.domains, lambda: datetime.now(UTC), clock)
        monkeypatch.setattr(module, "greet", self.greet)
        monkeypatch.setattr(module, "is_socket", lambda _path: True)
        monkeypatch.setattr(module, "mark_unresponsive", lambda path: self.lost.append(path.name))

    def __iter__(self) -> Any:
        return iter(self.ghosts)

    def last_known_uid(self, key: str) -> str:
        return next(one.uid for one in self.ghosts if one.key == key)

    def known(self, uid: str) -> Any:
        async def ping() -> None:
            self.called[uid] += 1
            if uid in self.hung:
                await asyncio.sleep(5)
                raise RpcError("Ping", "late", "DEADLINE_EXCEEDED")

        async def domain() -> None:
            self.asked[uid] += 1

        return SimpleNamespace(
            socket=SimpleNamespace(path=Path(f"/{uid}")), rpc=SimpleNamespace(ping=ping), domain=domain
        )

    async def open(self, ghost: Ghost) -> Any:
        return self.known(ghost.uid)

    async def greet(self, paths: Iterable[Path]) -> list[bool]:
        names = [path.name for path in paths]
        self.greeted.update(names)
        await asyncio.sleep(2 if self.hung & set(names) else 0.02)
        return [name not in self.hung for name in names]


@virtual_time
async def test_each_is_greeted_in_its_turn_and_called_now_and_then(monkeypatch: pytest.MonkeyPatch) -> None:
    node = Launchers(200, monkeypatch)
    await node.rounds.ask_all(node.ghosts)
    async with background(node.rounds.run()):
        await asyncio.sleep(10 * CALL)
    turns = 10 * CALL / PERIOD
    for ghost in node.ghosts:
        calls = node.called[ghost.uid] + node.asked[ghost.uid]
        assert node.asked[ghost.uid] + 1 >= 10 * CALL / RESYNC
        assert 8 <= calls <= 14
        assert turns * 0.85 <= node.greeted[ghost.uid] + calls <= turns + 2
    assert node.lost == []


@virtual_time
async def test_those_that_hang_are_given_up_in_time_and_hold_up_none(monkeypatch: pytest.MonkeyPatch) -> None:
    node = Launchers(200, monkeypatch)
    await node.rounds.ask_all(node.ghosts)
    async with background(node.rounds.run()):
        await asyncio.sleep(2 * PERIOD)
        node.hung = {f"uid-{n}" for n in range(0, 200, 10)}
        before = Counter(node.greeted)
        await asyncio.sleep(TIMEOUT + 4 * PERIOD)
        assert set(node.lost) == node.hung
        assert node.rounds.since < PERIOD
        for uid in node.greeted.keys() - node.hung:
            assert node.greeted[uid] - before[uid] >= 3


@virtual_time
async def test_rounds_that_stand_still_are_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    node = Launchers(3, monkeypatch)
    await asyncio.sleep(50)
    assert node.rounds.since == 50
    async with background(node.rounds.run()):
        await asyncio.sleep(2 * PERIOD)
        assert node.rounds.since < PERIOD


@virtual_time
async def test_a_node_without_launchers_does_not_stand_still(monkeypatch: pytest.MonkeyPatch) -> None:
    node = Launchers(0, monkeypatch)
    async with background(node.rounds.run()):
        await asyncio.sleep(10 * PERIOD)
        assert node.rounds.since <= PERIOD + 1


@virtual_time
async def test_an_agent_that_cannot_greet_blames_no_launcher(monkeypatch: pytest.MonkeyPatch) -> None:
    node = Launchers(30, monkeypatch)
    await node.rounds.ask_all(node.ghosts)

    async def refuse(_paths: Iterable[Path]) -> list[bool]:
        raise OSError(24, "Too many open files")

    monkeypatch.setattr(module, "greet", refuse)
    async with background(node.rounds.run()):
        await asyncio.sleep(CALL + 2 * PERIOD)
        assert node.lost == []
        monkeypatch.setattr(module, "greet", node.greet)
        await asyncio.sleep(2 * PERIOD)
        assert len(node.greeted) == 30


@virtual_time
async def test_a_socket_that_cannot_be_looked_at_is_not_gone_and_no_other_s_trouble(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    node = Launchers(30, monkeypatch)
    await node.rounds.ask_all(node.ghosts)

    def look(path: Path) -> bool:
        if path.name == "uid-7":
            raise OSError(5, "Input/output error")
        return True

    monkeypatch.setattr(module, "is_socket", look)
    async with background(node.rounds.run()):
        await asyncio.sleep(CALL + TIMEOUT + 2 * PERIOD)
        assert node.lost == []
        assert len(node.greeted) == 29
        monkeypatch.setattr(module, "is_socket", lambda _path: True)
        await asyncio.sleep(2 * PERIOD)
        assert len(node.greeted | node.called) == 30
