"""What is expected and not yet seen."""

from __future__ import annotations

import pytest

from kvnode.kube.expectations import Expectations


class Clock:
    """A clock that is set by hand."""

    seconds = 0.0

    def __call__(self) -> float:
        return self.seconds


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def expectations(clock: Clock) -> Expectations:
    return Expectations(clock)


def test_nothing_expected_is_satisfied(expectations: Expectations) -> None:
    assert expectations.satisfied("ns/vm")
    assert expectations.pending("ns/vm") == (0, 0)


def test_a_creation_is_waited_for(expectations: Expectations) -> None:
    expectations.expect_creations("ns/vm", 1)
    assert not expectations.satisfied("ns/vm")
    assert expectations.pending("ns/vm") == (1, 0)
    expectations.creation_observed("ns/vm")
    assert expectations.satisfied("ns/vm")


def test_only_the_deletions_that_are_expected_count(expectations: Expectations) -> None:
    expectations.expect_deletions("ns/vm", ["ns/a", "ns/b"])
    for key in ("ns/other", "ns/a", "ns/a"):
        expectations.deletion_observed("ns/vm", key)
    assert expectations.pending("ns/vm") == (0, 1)
    expectations.deletion_observed("ns/vm", "ns/b")
    assert expectations.satisfied("ns/vm")


def test_a_new_expectation_replaces_the_one_before(expectations: Expectations) -> None:
    expectations.expect_creations("ns/vm", 3)
    expectations.expect_deletions("ns/vm", ["ns/a"])
    assert expectations.pending("ns/vm") == (0, 1)


def test_after_five_minutes_it_is_taken_for_missed(expectations: Expectations, clock: Clock) -> None:
    expectations.expect_creations("ns/vm", 1)
    clock.seconds = 300
    assert not expectations.satisfied("ns/vm")
    clock.seconds = 300.1
    assert expectations.satisfied("ns/vm")


def test_cleared_and_forgotten(expectations: Expectations) -> None:
    expectations.expect_creations("ns/vm", 1)
    expectations.clear("ns/vm")
    assert expectations.satisfied("ns/vm")
    assert len(expectations) == 1
    expectations.forget("ns/vm")
    assert len(expectations) == 0


def test_a_creation_seen_that_nobody_expected_helps_no_later_one(expectations: Expectations) -> None:
    expectations.creation_observed("ns/vm")
    expectations.expect_creations("ns/vm", 1)
    assert not expectations.satisfied("ns/vm")
