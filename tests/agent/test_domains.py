"""News of domains."""

from __future__ import annotations

import asyncio

import pytest

from kvnode.agent.domains import DomainStore
from kvnode.agent.errors import AgentError
from kvnode.agent.ghost import Ghost
from tests.agent.build import domain, run, vmi, world

KEY = "default/testvmi"
SENDER = Ghost("default", "testvmi", "uid-1", "/s")


class Queue:
    def __init__(self):
        self.calls = []

    def add(self, key):
        self.calls.append(("add", key))

    def forget(self, key):
        self.calls.append(("forget", key))


def store():
    queue = Queue()
    return DomainStore(queue), queue


def test_news_are_acted_on_at_once_whatever_failed_before():
    domains, queue = store()
    domains.heard("ADDED", domain().raw, SENDER)
    assert domains.get(KEY).status == "Running"
    assert queue.calls == [("forget", KEY), ("add", KEY)]


def test_a_deleted_domain_is_none():
    domains, queue = store()
    domains.heard("ADDED", domain().raw, SENDER)
    domains.heard("DELETED", domain().raw, SENDER)
    assert domains.get(KEY) is None
    assert queue.calls[-1] == ("add", KEY)


async def hear_the_end(domains, seconds):
    waiting = asyncio.ensure_future(domains.deletion(KEY, seconds))
    await asyncio.sleep(0)
    domains.heard("MODIFIED", domain().raw, SENDER)
    await asyncio.sleep(0)
    assert not waiting.done()
    domains.heard("DELETED", domain().raw, SENDER)
    await waiting


def test_the_end_of_a_domain_is_waited_for():
    domains, _ = store()
    domains.heard("ADDED", domain().raw, SENDER)
    asyncio.run(asyncio.wait_for(hear_the_end(domains, 1000), 60))
    assert domains.get(KEY) is None


def test_an_end_that_nobody_tells_is_waited_for_no_longer_than_said():
    domains, _ = store()
    asyncio.run(asyncio.wait_for(domains.deletion(KEY, 1000), 60))  # there is none
    domains.heard("ADDED", domain().raw, SENDER)
    asyncio.run(domains.deletion(KEY, 0.01))
    assert domains.get(KEY) is not None


def test_of_a_lost_launcher_the_uid_is_kept():
    domains, _ = store()
    domains.lost(KEY, "uid-1", "2024-06-01T12:00:00Z")
    assert domains.get(KEY).is_deleted
    assert domains.get(KEY).uid == "uid-1"


def test_one_that_cannot_be_asked_says_nothing_new():
    domains, _ = store()
    domains.unreachable(KEY, "uid-1")
    assert domains.get(KEY).status == "Unknown"
    domains.heard("MODIFIED", domain().raw, SENDER)
    domains.unreachable(KEY, "uid-1")
    assert domains.get(KEY).status == "Running"
    assert len(list(domains)) == 1


def test_nothing_is_said_of_a_running_vm_before_its_launcher_was_asked():
    domains, _ = store()
    domains.expect([SENDER])
    made = world(vmi("Running"), None)
    made.parts.domains = domains
    assert run(made) == []
    domains.absent(KEY)
    assert "event:Warning:Stopped" in run(made)


def test_what_was_heard_already_is_known():
    domains, queue = store()
    domains.heard("ADDED", domain().raw, SENDER)
    domains.expect([SENDER])
    assert domains.get(KEY).status == "Running"
    assert queue.calls == [("forget", KEY), ("add", KEY)]


@pytest.mark.parametrize(
    "sender", [Ghost("default", "other", "uid-1", "/s"), Ghost("default", "testvmi", "uid-2", "/s")]
)
def test_a_launcher_speaks_of_its_own_vm_alone(sender):
    domains, queue = store()
    with pytest.raises(AgentError, match="may not speak of default/testvmi"):
        domains.heard("ADDED", domain().raw, sender)
    assert domains.get(KEY) is None
    assert queue.calls == []
