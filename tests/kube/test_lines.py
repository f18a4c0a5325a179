"""Lines out of pieces."""

from __future__ import annotations

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kvnode.kube.lines import LineSplitter


@given(st.lists(st.binary(max_size=20)), st.data())
def test_however_it_is_cut_the_lines_are_the_same(pieces: list[bytes], data: st.DataObject) -> None:
    whole = b"\n".join(pieces) + b"\n"
    splitter = LineSplitter()
    lines = []
    position = 0
    while position < len(whole):
        size = data.draw(st.integers(1, 7))
        lines += splitter.feed(whole[position : position + size])
        position += size
    assert lines == [line for line in whole.split(b"\n") if line.strip()]
    assert splitter.pending == 0


def test_a_line_that_is_not_whole_waits() -> None:
    splitter = LineSplitter()
    assert splitter.feed(b"one\ntw") == [b"one"]
    assert splitter.pending == 2
    assert splitter.feed(b"o\n") == [b"two"]


@pytest.mark.parametrize("data", [b"x" * 11, b"x" * 11 + b"\n", b"a\n" + b"x" * 11])
def test_too_long_a_line_is_not_put_up_with(data: bytes) -> None:
    with pytest.raises(ValueError, match="more than 10 bytes"):
        LineSplitter(10).feed(data)


def test_a_long_line_costs_no_more_in_small_pieces() -> None:
    splitter = LineSplitter()
    piece = b"x" * 64
    begun = time.process_time()
    for _ in range(1 << 16):  # 4 MiB; joined anew each time it would be 128 GiB
        splitter.feed(piece)
    assert [len(line) for line in splitter.feed(b"\n")] == [4 << 20]
    assert time.process_time() - begun < 5
