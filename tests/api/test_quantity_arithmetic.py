"""Sums of quantities: exact, and written as the Kubernetes API would write them."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kvnode.api.quantity import Quantity

AMOUNTS = st.builds(
    lambda number, suffix: Quantity(f"{number}{suffix}"),
    st.integers(0, 10**6),
    st.sampled_from(["", "m", "k", "M", "Ki", "Mi", "Gi", "e3"]),
)


@pytest.mark.parametrize(
    ("left", "right", "text"),
    [
        ("2Gi", "396Mi", "2444Mi"),
        ("2Gi", "415236096", "2444Mi"),
        ("2048M", "283115520", "2331115520"),
        ("2e9", "268Mi", "2281018368"),
        ("0", "50M", "50M"),
        ("0", "1Gi", "1Gi"),
        ("1", "500m", "1500m"),
        ("1Gi", "0", "1Gi"),
        ("9223372036854775807", "1", "9223372036854775808"),
    ],
)
def test_a_sum_is_written_in_the_units_of_its_first_part(left: str, right: str, text: str) -> None:
    assert str(Quantity(left) + Quantity(right)) == text


def test_a_difference() -> None:
    assert str(Quantity("3Gi") - Quantity("2Gi")) == "1Gi"
    assert str(Quantity("1Gi") - Quantity("2Gi")) == "-1Gi"
    assert str(Quantity("0") - Quantity("1Gi")) == "-1Gi"


def test_a_whole_amount_in_the_units_of_another() -> None:
    assert str(Quantity("3Gi").with_value(2 << 30)) == "2Gi"
    assert str(Quantity("3G").with_value(2 * 10**9)) == "2G"
    assert str(Quantity("3G").with_value(1 << 30)) == "1073741824"


@given(AMOUNTS, AMOUNTS)
def test_sums_are_exact_and_do_not_touch_their_parts(left: Quantity, right: Quantity) -> None:
    before = (str(left), str(right))
    total = left + right
    assert total == right + left
    assert total - right == left
    assert (str(left), str(right)) == before
    assert Quantity(str(total)) == total
