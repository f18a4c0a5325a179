"""Growing delays."""

from __future__ import annotations

import pytest

from kvnode.kube.backoff import Backoff, ItemBackoff


def test_delays_double_to_the_cap() -> None:
    backoff = Backoff(0.5, 3)
    assert [backoff.next() for _ in range(4)] == [0.5, 1, 2, 3]
    backoff.reset()
    assert backoff.next() == 0.5


def test_jitter_adds_a_part_at_random() -> None:
    assert Backoff(2, 10, jitter=0.5, random_unit=lambda: 1.0).next() == 3


def test_an_item_waits_from_5_ms_to_1000_s_as_in_kubernetes() -> None:
    backoff: ItemBackoff[str] = ItemBackoff()
    delays = [backoff.next("a") for _ in range(20)]
    assert delays[:3] == pytest.approx([0.005, 0.01, 0.02])
    assert delays[17] == pytest.approx(655.36)
    assert delays[18:] == [1000, 1000]


def test_items_fail_each_for_themselves() -> None:
    backoff: ItemBackoff[str] = ItemBackoff()
    backoff.next("a")
    backoff.next("a")
    assert (backoff.failures("a"), backoff.failures("b")) == (2, 0)
    assert backoff.next("b") == pytest.approx(0.005)
    backoff.forget("a")
    backoff.forget("never seen")
    assert backoff.next("a") == pytest.approx(0.005)


def test_failing_for_ever_stays_at_the_cap() -> None:
    backoff = Backoff(0.005, 1000)
    backoff.failures = 5000
    assert backoff.next() == 1000
