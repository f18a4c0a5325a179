"""How often something took how long."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from kvnode.kube.histogram import DURATIONS, Histogram

VALUES = st.floats(0, 100)


@given(st.lists(VALUES, max_size=20))
def test_each_bound_counts_all_that_is_not_above_it(values: list[float]) -> None:
    found = Histogram()
    for value in values:
        found.observe(value)
    for bound, count in found:
        assert count == len([value for value in values if value <= bound])
    assert found.sum == sum(values)


def test_bounds_are_powers_of_ten_and_infinity() -> None:
    bounds = [bound for bound, _ in Histogram()]
    assert bounds == [*DURATIONS, float("inf")]
    assert bounds[0] == 1e-8
    assert round(bounds[-2], 9) == 10
