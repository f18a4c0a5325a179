"""The token bucket."""

from __future__ import annotations

import asyncio

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kvnode.kube.ratelimit import TokenBucket
from tests.kube.loops import now, settle, virtual_time


class Clock:
    """A clock that is set by hand."""

    def __init__(self) -> None:
        self.seconds = 0.0

    def __call__(self) -> float:
        return self.seconds


def test_a_burst_is_free_and_then_turns_come_at_the_rate() -> None:
    clock = Clock()
    bucket = TokenBucket(10, 3, clock)
    assert [bucket.reserve() for _ in range(5)] == pytest.approx([0, 0, 0, 0.1, 0.2])
    clock.seconds = 0.2
    assert bucket.reserve() == pytest.approx(0.1)


def test_rest_fills_it_to_the_burst_and_no_further() -> None:
    clock = Clock()
    bucket = TokenBucket(10, 2, clock)
    clock.seconds = 1000
    assert [bucket.take() for _ in range(3)] == [True, True, False]


def test_a_clock_that_stands_still_or_steps_back_gives_nothing() -> None:
    clock = Clock()
    clock.seconds = 10
    bucket = TokenBucket(1, 1, clock)
    assert bucket.take()
    clock.seconds = 5
    assert not bucket.take()


@pytest.mark.parametrize(("rate", "burst"), [(0, 1), (-1, 1), (1, 0)])
def test_it_must_let_something_through(rate: float, burst: int) -> None:
    with pytest.raises(ValueError, match="must be positive"):
        TokenBucket(rate, burst)


@given(st.lists(st.floats(0, 2), min_size=1, max_size=60))
def test_never_more_than_burst_and_rate_allow(gaps: list[float]) -> None:
    clock = Clock()
    bucket = TokenBucket(4, 5, clock)
    turns = []
    for gap in gaps:
        clock.seconds += gap
        turns.append(clock.seconds + bucket.reserve())
    for first in range(len(turns)):
        for last in range(first, len(turns)):
            assert last - first + 1 <= 5 + 4 * (turns[last] - turns[first]) + 1e-6


@virtual_time
async def test_waiting_keeps_the_order() -> None:
    bucket = TokenBucket(2, 1, asyncio.get_running_loop().time)
    order: list[tuple[str, float]] = []
    start = now()

    async def one(name: str) -> None:
        await bucket.wait()
        order.append((name, now() - start))

    await asyncio.gather(*(one(name) for name in "abc"))
    assert order == [("a", 0), ("b", pytest.approx(0.5)), ("c", pytest.approx(1.0))]


@virtual_time
async def test_a_turn_that_is_not_taken_is_given_back() -> None:
    bucket = TokenBucket(1, 1, asyncio.get_running_loop().time)
    await bucket.wait()
    waiting = asyncio.create_task(bucket.wait())
    await settle()
    waiting.cancel()
    await asyncio.gather(waiting, return_exceptions=True)
    assert bucket.reserve() == pytest.approx(1.0)
