"""News of domains."""

from __future__ import annotations

from kvnode.agent.domains import DomainStore
from tests.agent.build import domain

KEY = "default/testvmi"


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
    domains.heard("ADDED", domain().raw)
    assert domains.get(KEY).status == "Running"
    assert queue.calls == [("forget", KEY), ("add", KEY)]


def test_a_deleted_domain_is_none():
    domains, queue = store()
    domains.heard("ADDED", domain().raw)
    domains.heard("DELETED", domain().raw)
    assert domains.get(KEY) is None
    assert queue.calls[-1] == ("add", KEY)


def test_of_a_lost_launcher_the_uid_is_kept():
    domains, _ = store()
    domains.lost(KEY, "uid-1", "2024-06-01T12:00:00Z")
    assert domains.get(KEY).is_deleted
    assert domains.get(KEY).uid == "uid-1"


def test_one_that_cannot_be_asked_says_nothing_new():
    domains, _ = store()
    domains.unreachable(KEY, "uid-1")
    assert domains.get(KEY).status == "Unknown"
    domains.heard("MODIFIED", domain().raw)
    domains.unreachable(KEY, "uid-1")
    assert domains.get(KEY).status == "Running"
    assert len(list(domains)) == 1
