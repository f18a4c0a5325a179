"""The work queue."""

from __future__ import annotations

import asyncio
import contextlib

import pytest

from kvnode.kube.queue import AHEAD, ShutDown, WorkQueue, work
from tests.kube.loops import now, settle, virtual_time


async def drained(queue: WorkQueue) -> list[str]:
    """All names that are ready, each done with at once."""
    keys = []
    while len(queue):
        keys.append(await queue.get())
        queue.done(keys[-1])
    return keys


@virtual_time
async def test_a_name_is_in_once_and_in_order() -> None:
    queue = WorkQueue("q")
    for key in ("a", "b", "a"):
        queue.add(key)
    assert await drained(queue) == ["a", "b"]


@virtual_time
async def test_a_name_added_while_it_is_worked_on_comes_again_after() -> None:
    queue = WorkQueue("q")
    queue.add("a")
    assert await queue.get() == "a"
    queue.add("a")
    queue.add("a")
    assert len(queue) == 0
    queue.done("a")
    assert await drained(queue) == ["a"]
    assert len(queue) == 0


@virtual_time
async def test_a_delayed_name_comes_in_its_time() -> None:
    queue = WorkQueue("q")
    start = now()
    queue.add_after("late", 7)
    queue.add_after("soon", 2)
    assert len(queue) == 0
    assert await queue.get() == "soon"
    assert now() - start == pytest.approx(2)
    assert await queue.get() == "late"
    assert now() - start == pytest.approx(7)


@virtual_time
async def test_the_earliest_of_several_times_counts() -> None:
    queue = WorkQueue("q")
    start = now()
    queue.add_after("a", 9)
    queue.add_after("a", 3)
    queue.add_after("a", 5)
    assert queue.delayed == 1
    assert await queue.get() == "a"
    assert now() - start == pytest.approx(3)
    queue.done("a")
    await asyncio.sleep(20)
    assert len(queue) == 0


@virtual_time
async def test_no_delay_is_now() -> None:
    queue = WorkQueue("q")
    queue.add_after("a", 0)
    assert len(queue) == 1


@virtual_time
async def test_failures_wait_longer_each_time_until_forgotten() -> None:
    queue = WorkQueue("q")
    assert [queue.add_rate_limited("a") for _ in range(3)] == pytest.approx([0.005, 0.01, 0.02])
    assert queue.failures("a") == 3
    queue.forget("a")
    assert queue.failures("a") == 0
    assert queue.add_rate_limited("a") == pytest.approx(0.005)


@virtual_time
async def test_many_that_fail_share_ten_a_second_after_a_hundred() -> None:
    queue = WorkQueue("q")
    delays = [queue.add_rate_limited(f"k{number}") for number in range(120)]
    assert max(delays[:100]) == pytest.approx(0.005)
    assert delays[100] == pytest.approx(0.1)
    assert delays[119] == pytest.approx(2.0)


@virtual_time
async def test_a_cancelled_worker_loses_no_name() -> None:
    queue = WorkQueue("q")
    first = asyncio.create_task(queue.get())
    second = asyncio.create_task(queue.get())
    await settle()
    queue.add("a")
    first.cancel()
    assert await second == "a"
    with pytest.raises(asyncio.CancelledError):
        await first


@virtual_time
async def test_shut_down_gives_out_what_is_ready_and_no_more() -> None:
    queue = WorkQueue("q")
    idle = WorkQueue("idle")
    waiting = asyncio.create_task(idle.get())
    await settle()
    queue.add("a")
    queue.add_after("b", 1)
    for one in (queue, idle):
        one.shut_down()
    queue.add("c")
    assert await queue.get() == "a"
    with pytest.raises(ShutDown):
        await queue.get()
    with pytest.raises(ShutDown):
        await waiting


@virtual_time
async def test_workers_bring_back_what_fails_and_never_share_a_name() -> None:
    queue = WorkQueue("q")
    calls: list[str] = []
    busy: set[str] = set()

    async def reconcile(key: str) -> None:
        assert key not in busy
        busy.add(key)
        await asyncio.sleep(0.5)
        busy.remove(key)
        calls.append(key)
        if key == "bad" and calls.count("bad") < 4:
            raise ValueError("not yet")

    for key in ("good", "bad", "other"):
        queue.add(key)
    working = asyncio.create_task(work(queue, 3, reconcile))
    await asyncio.sleep(0.1)
    queue.add("good")
    await asyncio.sleep(60)
    queue.shut_down()
    await working
    assert sorted(calls) == ["bad"] * 4 + ["good"] * 2 + ["other"]
    assert queue.failures("bad") == 0


@virtual_time
async def test_a_worker_ends_also_when_a_pass_loses_its_cancellation() -> None:
    queue = WorkQueue("q")

    async def reconcile(_key: str) -> None:
        with contextlib.suppress(asyncio.CancelledError):
            await asyncio.sleep(10)

    queue.add("a")
    working = asyncio.create_task(work(queue, 1, reconcile))
    await asyncio.sleep(1)
    working.cancel()
    await asyncio.wait([working], timeout=100)
    assert working.cancelled()


@virtual_time
async def test_names_that_take_long_hold_up_no_others_and_leave_as_many_workers_as_before() -> None:
    queue = WorkQueue("q")
    done: list[tuple[str, float]] = []
    at_once = most = 0

    async def reconcile(key: str) -> None:
        nonlocal at_once, most
        at_once += 1
        most = max(most, at_once)
        await asyncio.sleep(100 if key.startswith("slow") else 1)
        at_once -= 1
        done.append((key, now()))

    for number in range(6):
        queue.add(f"slow{number}")
    queue.add("quick")
    working = asyncio.create_task(work(queue, 2, reconcile, patience=2.0))
    began = now()
    await asyncio.sleep(50)
    assert done == [("quick", began + 7)], "two at a time are given up, each after 2 s"
    await asyncio.sleep(70)
    assert len(done) == 7
    most = 0
    for number in range(10):
        queue.add(f"quick{number}")
    await asyncio.sleep(20)
    assert most == 2
    assert len(done) == 17
    working.cancel()
    await asyncio.wait([working])
    assert working.cancelled()


@virtual_time
async def test_all_workers_end_with_the_work(caplog: pytest.LogCaptureFixture) -> None:
    """Also those that came in others' stead, and none comes after it."""
    queue = WorkQueue("q")
    ended: list[str] = []

    async def reconcile(key: str) -> None:
        try:
            await asyncio.sleep(100)
        finally:
            await asyncio.sleep(5)  # as a pass that tidies up: its patience ends meanwhile
            ended.append(key)

    for key in ("a", "b"):
        queue.add(key)
    working = asyncio.create_task(work(queue, 1, reconcile, patience=2.0))
    await asyncio.sleep(3)
    assert set(queue.running()) == {"a", "b"}
    working.cancel()
    await asyncio.wait([working])
    assert sorted(ended) == ["a", "b"]
    assert not caplog.records


@virtual_time
async def test_when_the_cause_is_gone_what_failed_comes_at_once() -> None:
    queue = WorkQueue("test")
    for _ in range(10):
        queue.add_rate_limited("a")
    queue.add_after("later", 500)
    queue.retry_now()
    assert (len(queue), queue.failures("a")) == (1, 0)
    assert await queue.get() == "a"


@virtual_time
async def test_an_urgent_name_goes_ahead() -> None:
    queue = WorkQueue("q")
    for key in ("a", "b", "c"):
        queue.add(key)
    queue.add_urgent("new")
    queue.add_urgent("c")
    queue.add("new")
    queue.add_urgent("new")
    assert len(queue) == 4
    assert await drained(queue) == ["new", "c", "a", "b"]


@virtual_time
async def test_a_name_that_becomes_urgent_while_it_is_worked_on_comes_next() -> None:
    queue = WorkQueue("q")
    queue.add("a")
    assert await queue.get() == "a"
    queue.add("b")
    queue.add("a")
    queue.add_urgent("a")
    queue.done("a")
    assert await drained(queue) == ["a", "b"]


@virtual_time
async def test_urgent_names_do_not_keep_others_out() -> None:
    queue = WorkQueue("q")
    queue.add("patient")
    for number in range(3 * AHEAD):
        queue.add_urgent(str(number))
    assert (await drained(queue)).index("patient") == AHEAD


@virtual_time
async def test_an_urgent_name_wakes_a_worker() -> None:
    queue = WorkQueue("q")
    waiting = asyncio.ensure_future(queue.get())
    await settle()
    queue.add_urgent("a")
    assert await waiting == "a"


@virtual_time
async def test_what_a_queue_does_can_be_measured() -> None:
    queue = WorkQueue("q")
    queue.add("a")
    queue.add("a")
    await asyncio.sleep(2)
    await queue.get()
    await asyncio.sleep(3)
    assert queue.running() == {"a": 3.0}
    queue.add("a")  # comes again, and waits from now on
    await asyncio.sleep(1)
    queue.done("a")
    queue.add_rate_limited("a")
    assert queue.running() == {}
    assert (queue.adds, queue.retries) == (2, 1)
    assert (queue.waited.sum, queue.worked.sum) == (2.0, 4.0)
    await queue.get()
    assert queue.waited.sum == 3.0


@virtual_time
async def test_a_delayed_name_may_be_urgent_when_it_comes() -> None:
    queue = WorkQueue("q")
    queue.add_after("late", 2)
    queue.add_after("late", 3, urgent=True)
    await asyncio.sleep(1)
    queue.add("a")
    await asyncio.sleep(2)
    queue.add_after("now", 0, urgent=True)
    assert await drained(queue) == ["late", "now", "a"]
    queue.add_after("late", 1)
    queue.add("b")
    await asyncio.sleep(2)
    assert await drained(queue) == ["b", "late"]
