"""The launcher's messages to the node agent: in order, and the newest state whatever becomes of the agent."""

from __future__ import annotations

import asyncio
import shutil
import socket
import tempfile
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path

import pytest

from kvnode.launcher import notify
from kvnode.launcher.notify import ADDED, MODIFIED, WARNING, Notifier
from kvnode.launcher.pod.settings import Subject
from kvnode.rpc.errors import RpcError
from kvnode.rpc.notify import NotifyClient
from tests.launcher.agent import FakeAgent, Heard
from tests.reports import report

REAL_PAUSE = notify.RETRY_SECONDS
SUBJECT = Subject("ns", "vm", "uid-1")


@pytest.fixture
def share() -> Iterator[Path]:
    """A directory with a short path, as sockets lie in it."""
    path = Path(tempfile.mkdtemp(prefix="kvn-"))
    yield path
    shutil.rmtree(path)


@pytest.fixture(autouse=True)
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Try again soon."""
    monkeypatch.setattr(notify, "RETRY_SECONDS", 0.05)
    monkeypatch.setattr(notify, "CONNECT_SECONDS", 0.5)


def state(number: int) -> str:
    """A domain's JSON, of which nothing but the state is looked at."""
    return f'{{"ObjectMeta":{{}},"Status":{{"Status":"{number}","Reason":""}}}}'


def run(share: Path, scenario: Callable[[Notifier, FakeAgent], Awaitable[None]]) -> list[Heard]:
    """Play a scenario with a notifier that runs and an agent that does not yet; returns what the agent heard."""

    async def play() -> list[Heard]:
        notifier, agent = Notifier(share / notify.PIPE, SUBJECT), FakeAgent(share)
        notifier.start()
        try:
            await scenario(notifier, agent)
        finally:
            await notifier.stop()
            await agent.stop()
        return agent.heard

    return asyncio.run(play())


def states(heard: list[Heard]) -> list[str]:
    """The domain states among the messages."""
    return [one.state[0] for one in heard if one.kind != "EVENT"]


def test_messages_arrive_in_order_each_once(share: Path) -> None:
    async def scenario(notifier: Notifier, agent: FakeAgent) -> None:
        await agent.start()
        notifier.domain_event(ADDED, state(0))
        await agent.until(lambda one: one.kind == ADDED, "the first")
        for number in range(1, 6):
            notifier.domain_event(MODIFIED, state(number))
            notifier.k8s_event(WARNING, f"Reason{number}", "text")
        await agent.until(lambda one: one.content.get("reason") == "Reason5", "the last")

    heard = run(share, scenario)
    assert states(heard) == ["0", "1", "2", "3", "4", "5"]
    assert [one.content["reason"] for one in heard if one.kind == "EVENT"] == [
        f"Reason{n}" for n in range(1, 6)
    ]


def test_a_kubernetes_event_names_the_vmi(share: Path) -> None:
    async def scenario(notifier: Notifier, agent: FakeAgent) -> None:
        await agent.start()
        notifier.k8s_event(WARNING, "IOerror", "no space")
        await agent.until(lambda one: one.kind == "EVENT", "the event")

    event = run(share, scenario)[0].content
    assert event["involvedObject"] == {
        "kind": "VirtualMachineInstance",
        "namespace": "ns",
        "name": "vm",
        "uid": "uid-1",
        "apiVersion": "kubevirt.io/v1",
    }
    assert (event["type"], event["reason"], event["message"]) == ("Warning", "IOerror", "no space")


def test_the_newest_state_and_every_event_reach_an_agent_that_comes_late(share: Path) -> None:
    async def scenario(notifier: Notifier, agent: FakeAgent) -> None:
        notifier.domain_event(ADDED, state(0))
        await asyncio.sleep(1)  # so that the agent is found to be away
        for number in range(1, 50):
            notifier.domain_event(MODIFIED, state(number))
        notifier.k8s_event(WARNING, "Between", "text")
        notifier.domain_event(MODIFIED, state(50))
        await agent.start()
        await agent.until(lambda one: one.kind != "EVENT" and one.state[0] == "50", "the newest")

    heard = run(share, scenario)
    assert heard[0].kind == ADDED, "the agent is told that the domain came"
    assert states(heard)[-2:] == ["49", "50"]
    assert len(heard) <= 4, "states that are out of date are not sent"
    assert [one.kind for one in heard].index("EVENT") < len(heard) - 1


@report("B74")
def test_a_socket_at_which_nobody_answers_is_dialled_again_within_a_second(
    share: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Such as an agent leaves that is restarted."""
    failures: list[RpcError] = []
    dial = NotifyClient.open

    async def counted(path: Path, timeout: float) -> NotifyClient:
        try:
            return await dial(path, timeout)
        except RpcError as error:
            failures.append(error)
            raise

    monkeypatch.setattr(NotifyClient, "open", counted)
    with socket.socket(socket.AF_UNIX) as left:
        left.bind(str(share / notify.PIPE))

    async def scenario(notifier: Notifier, agent: FakeAgent) -> None:
        notifier.domain_event(ADDED, state(0))
        async with asyncio.timeout(60):
            while len(failures) < 2:
                await asyncio.sleep(0.01)
        await agent.start()
        await agent.until(lambda one: one.kind == ADDED, "the domain came")

    assert states(run(share, scenario)) == ["0"]
    assert REAL_PAUSE <= 1


def test_nothing_is_lost_when_the_agent_restarts_again_and_again(share: Path) -> None:
    async def scenario(notifier: Notifier, agent: FakeAgent) -> None:
        for number in range(5):
            await agent.start()
            notifier.domain_event(MODIFIED, state(number))
            await agent.until(lambda one, n=str(number): one.state[0] == n, f"state {number}")
            await agent.stop()
            notifier.domain_event(MODIFIED, state(100 + number))

    assert {str(number) for number in range(5)} <= set(states(run(share, scenario)))


def test_the_end_counts_as_told_when_the_agent_has_heard_of_it(share: Path) -> None:
    async def scenario(notifier: Notifier, agent: FakeAgent) -> None:
        notifier.domain_event(MODIFIED, state(1), final=True)
        await asyncio.sleep(0.2)
        assert not notifier.final_told.is_set()
        await agent.start()
        await asyncio.wait_for(notifier.final_told.wait(), 60)

    run(share, scenario)


@pytest.mark.parametrize("times", [1, 3, 15])
def test_a_state_that_the_agent_fails_to_take_is_told_again_until_it_does(share: Path, times: int) -> None:
    async def scenario(notifier: Notifier, agent: FakeAgent) -> None:
        await agent.start()
        agent.refuse, agent.refusals = "the API server is away", times
        notifier.domain_event(ADDED, state(1))
        notifier.domain_event(MODIFIED, state(2), final=True)
        await asyncio.wait_for(notifier.final_told.wait(), 60)

    heard = run(share, scenario)
    assert states(heard)[-1] == "2", "the newest state"
    assert len(heard) <= 2


def test_a_refused_state_gives_way_to_a_newer_one(share: Path) -> None:
    async def scenario(notifier: Notifier, agent: FakeAgent) -> None:
        await agent.start()
        agent.refuse = "not now"
        notifier.domain_event(ADDED, state(1))
        await asyncio.sleep(0.3)
        for number in range(2, 20):
            notifier.domain_event(MODIFIED, state(number))
        await asyncio.sleep(0.3)
        assert not notifier.final_told.is_set()
        agent.refuse = ""
        await agent.until(lambda one: one.state[0] == "19", "the newest")

    heard = run(share, scenario)
    assert heard[0].kind == ADDED, "the first that the agent hears of the domain"
    assert "1" not in states(heard)


def test_an_event_that_is_refused_for_good_holds_up_nothing(
    share: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async def scenario(notifier: Notifier, agent: FakeAgent) -> None:
        await agent.start()
        agent.refuse_reason = "Bad"
        notifier.k8s_event(WARNING, "Bad", "text")
        notifier.k8s_event(WARNING, "Good", "text")
        notifier.domain_event(MODIFIED, state(1))
        await agent.until(lambda one: one.kind != "EVENT" and one.state[0] == "1", "the state")
        while "it is dropped" not in caplog.text:
            await asyncio.sleep(0.05)

    heard = run(share, scenario)
    assert [one.content["reason"] for one in heard if one.kind == "EVENT"] == ["Good"]
    assert caplog.text.count("does not take a message") == 1, "no flood"


def test_events_do_not_pile_up_for_ever(share: Path) -> None:
    async def scenario(notifier: Notifier, agent: FakeAgent) -> None:
        for number in range(3 * notify.MOST_EVENTS):
            notifier.k8s_event(WARNING, str(number), "text")
        await agent.start()
        await agent.until(lambda one: one.content["reason"] == str(3 * notify.MOST_EVENTS - 1), "the last")

    heard = run(share, scenario)
    assert len(heard) <= notify.MOST_EVENTS + 1


def test_the_end_of_a_domain_is_not_the_last_word_when_another_comes(share: Path) -> None:
    async def scenario(notifier: Notifier, agent: FakeAgent) -> None:
        await agent.start()
        notifier.domain_event(MODIFIED, state(1), final=True)
        await asyncio.wait_for(notifier.final_told.wait(), 60)
        notifier.domain_event(ADDED, state(2))
        assert not notifier.final_told.is_set()
        notifier.domain_event(MODIFIED, state(3), final=True)
        await asyncio.wait_for(notifier.final_told.wait(), 60)

    assert states(run(share, scenario)) == ["1", "2", "3"]
