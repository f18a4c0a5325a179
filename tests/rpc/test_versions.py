"""Which version two sides speak."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kvnode.rpc.errors import VersionError
from kvnode.rpc.versions import highest_common


def test_the_highest_that_both_know_whatever_the_order():
    assert highest_common([3, 1, 2], [2, 1]) == 2


@pytest.mark.parametrize(("server", "client"), [([2, 3], [1]), ([], [1]), ([1], [])])
def test_none_in_common(server, client):
    with pytest.raises(VersionError, match="no version in common"):
        highest_common(server, client)


def test_the_error_names_both_sides():
    with pytest.raises(VersionError, match="the server knows 2, 3, we none"):
        highest_common([3, 2], [])


@given(st.sets(st.integers(0, 5), min_size=1), st.sets(st.integers(0, 5)))
def test_what_is_agreed_on_is_known_to_both(server, client):
    if server & client:
        agreed = highest_common(server, client)
        assert agreed in server & client
        assert not any(version > agreed for version in server & client)
