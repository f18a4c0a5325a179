"""Back-offs."""

from __future__ import annotations

from kvnode.agent.retry import BackoffLimiter, IoErrorRetry


class Time:
    now = 0.0

    def __call__(self) -> float:
        return self.now


class TestIoErrors:
    def test_the_first_is_tried_at_once_and_its_result_waits(self):
        time = Time()
        retry = IoErrorRetry(time)
        assert retry.delay("u") == 0
        time.now = 2
        assert retry.delay("u") == 8
        time.now = 5
        assert retry.delay("u") == 5

    def test_waits_grow_to_three_minutes(self):
        time = Time()
        retry = IoErrorRetry(time)
        waits = []
        retry.delay("u")
        for _ in range(7):
            waits.append(wait := retry.delay("u"))
            time.now += wait + 0.5
            assert retry.delay("u") == 0
        assert waits == [10, 20, 40, 80, 160, 180, 180]

    def test_a_failure_long_after_a_try_is_a_new_one(self):
        time = Time()
        retry = IoErrorRetry(time)
        retry.delay("u")
        time.now = 31
        assert retry.delay("u") == 0

    def test_vms_that_work_or_are_gone_take_no_room(self):
        time = Time()
        retry = IoErrorRetry(time)
        for number in range(10):
            retry.delay(str(number))
            retry.delay(str(number))
        time.now = 1000
        retry.delay("u")
        assert len(retry) == 1


class TestLimiter:
    def test_ever_more_seldom(self):
        time = Time()
        limiter = BackoffLimiter(time)
        tries = []
        for second in range(100):
            time.now = float(second)
            if limiter.allows("u"):
                tries.append(second)
        assert tries == [0, 3, 9, 19, 37, 69]

    def test_not_for_ever(self):
        time = Time()
        limiter = BackoffLimiter(time)
        limiter.allows("u")
        time.now = 18_000
        assert not limiter.allows("u")
        limiter.forget("u")
        assert limiter.allows("u")
        assert len(limiter) == 1
