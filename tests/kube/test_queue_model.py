"""The work queue against a model that is plain enough to be right, whatever is done to it in whatever order."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from fractions import Fraction
from typing import Any, TypeVar

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from kvnode.kube.queue import WorkQueue
from tests.kube.loops import VirtualTimeLoop

T = TypeVar("T")
KEYS = st.sampled_from("abcd")
RATE, BURST = 10, 3
BASE, CAP = 0.005, 1000.0


class Model(RuleBasedStateMachine):
    """Names are in or out, worked on or not, and due at a time; their order is the queue's own matter."""

    @initialize()
    def begin(self) -> None:
        """An empty queue, in a loop whose time passes only when told."""
        self.loop = VirtualTimeLoop()
        self.inside: set[str] = set()
        self.working: set[str] = set()
        self.due: dict[str, float] = {}
        self.failures: dict[str, int] = {}
        self.tokens, self.filled = Fraction(BURST), self.loop.time()
        self.queue = self.run(self.made())

    async def made(self) -> WorkQueue:
        """The queue, made in the loop."""
        return WorkQueue("model", base=BASE, cap=CAP, rate=RATE, burst=BURST)

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        """Run something that needs no time."""
        return self.loop.run_until_complete(work)

    def teardown(self) -> None:
        """Close the loop."""
        if hasattr(self, "loop"):
            self.queue.shut_down()
            self.loop.close()

    @rule(key=KEYS, urgent=st.booleans())
    def add(self, key: str, urgent: bool) -> None:
        """Put one in."""
        (self.queue.add_urgent if urgent else self.queue.add)(key)
        self.inside.add(key)

    @rule(key=KEYS, delay=st.sampled_from([0.0, 0.004, 0.5, 7.0, 900.0]), urgent=st.booleans())
    def add_after(self, key: str, delay: float, urgent: bool) -> None:
        """Put one in later."""
        self.queue.add_after(key, delay, urgent=urgent)
        self.expect(key, delay)

    def expect(self, key: str, delay: float) -> None:
        """The earliest of several times counts."""
        if delay <= 0:
            self.inside.add(key)
        else:
            due = self.loop.time() + delay
            self.due[key] = min(due, self.due.get(key, due))

    @rule(key=KEYS)
    def fail(self, key: str) -> None:
        """It failed: its own delay doubles, and a bucket is shared."""
        count = self.failures.get(key, 0)
        self.failures[key] = count + 1
        now = self.loop.time()
        self.tokens = min(Fraction(BURST), self.tokens + Fraction(now - self.filled) * RATE)
        self.filled = now
        self.tokens -= 1
        wanted = max(min(BASE * 2**count, CAP), float(-self.tokens / RATE), 0.0)
        delay = self.queue.add_rate_limited(key)
        assert abs(delay - wanted) < 1e-6, (delay, wanted)
        self.expect(key, delay)

    @rule(key=KEYS)
    def forget(self, key: str) -> None:
        """It was done with success."""
        self.queue.forget(key)
        self.failures.pop(key, None)

    @precondition(lambda self: self.inside - self.working)
    @rule()
    def take(self) -> None:
        """A worker takes one."""
        key = self.run(self.queue.get())
        assert key in self.inside, "given out twice, or never put in"
        assert key not in self.working, "two workers have it"
        self.inside.remove(key)
        self.working.add(key)

    @precondition(lambda self: self.working)
    @rule(data=st.data())
    def done(self, data: st.DataObject) -> None:
        """A worker is done with one."""
        key = data.draw(st.sampled_from(sorted(self.working)))
        self.queue.done(key)
        self.working.remove(key)

    @rule(seconds=st.sampled_from([0.0, 0.003, 0.1, 1.0, 60.0, 2000.0]))
    def wait(self, seconds: float) -> None:
        """Time passes."""
        self.run(asyncio.sleep(seconds))
        self.run(asyncio.sleep(0))
        for key, due in list(self.due.items()):
            if due <= self.loop.time():
                del self.due[key]
                self.inside.add(key)

    @invariant()
    def same(self) -> None:
        """The queue knows what the model knows."""
        if hasattr(self, "queue"):
            assert len(self.queue) == len(self.inside - self.working)
            assert self.queue.delayed == len(self.due)
            assert set(self.queue.running()) == self.working
            assert all(self.queue.failures(key) == self.failures.get(key, 0) for key in "abcd")


TestModel = Model.TestCase
TestModel.settings = settings(max_examples=60, stateful_step_count=40, deadline=None)
