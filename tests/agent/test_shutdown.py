"""How long a guest has left."""

from __future__ import annotations

from datetime import timedelta

from hypothesis import given
from hypothesis import strategies as st

from kvnode.agent.shutdown import seconds_left
from tests.agent.build import NOW, domain


def shutting_down(period: int, since: int | None = None):
    began = None if since is None else (NOW - timedelta(seconds=since)).isoformat()
    return domain(
        metadata={"GracePeriod": {"DeletionGracePeriodSeconds": period, "DeletionTimestamp": began}}
    )


def test_without_a_period_there_is_no_time():
    assert seconds_left(0, shutting_down(30), NOW) == 0
    assert seconds_left(None, domain(), NOW) == 0


def test_it_begins_when_the_launcher_says_so():
    assert seconds_left(30, shutting_down(30), NOW) is None


def test_the_vmis_period_comes_before_the_domains():
    assert seconds_left(60, shutting_down(30, since=40), NOW) == 20
    assert seconds_left(None, shutting_down(30, since=40), NOW) == 0


def test_a_time_to_come_gives_no_more():
    assert seconds_left(30, shutting_down(30, since=-1000), NOW) == 30


def test_a_time_that_cannot_be_read_is_none():
    about = domain(metadata={"GracePeriod": {"DeletionGracePeriodSeconds": 30, "DeletionTimestamp": "soon"}})
    assert seconds_left(30, about, NOW) is None


@given(st.integers(1, 10**6), st.integers(0, 10**6))
def test_it_runs_out_once_and_for_all(period, since):
    left = seconds_left(period, shutting_down(period, since), NOW)
    assert left == max(0, period - since)
