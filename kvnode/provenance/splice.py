"""Compare a domain with variants of it by looking only at the bytes that differ.

A domain of a hundred disks is long, and most variants touch a few bytes of it. What differs between the
common beginning and the common end is widened to whole elements, children of ``<devices>`` or of
``<domain>``, and only those are parsed.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right

from kvnode.provenance.align import Delta, compare, compare_siblings
from kvnode.provenance.tree import Element, parse, parse_siblings

__all__ = ["Baseline"]


class Baseline:
    """A domain, ready to be compared with many."""

    def __init__(self, xml: bytes) -> None:
        self.xml = xml
        self.domain = parse(xml)
        devices = self.domain.child("devices")
        self._levels = [level for level in (devices, self.domain) if level is not None and level.children]

    def compare(self, xml: bytes) -> Delta:
        """The differences between this domain and another; paths of what is added mean nothing."""
        first = _common_prefix(self.xml, xml)
        shared = _common_suffix(self.xml, xml, min(len(self.xml), len(xml)) - first)
        last = len(self.xml) - shared
        for level in self._levels:
            if level.children[0].start <= first and last <= level.inner_end:
                return self._compare_within(level, first, last, xml)
        return compare(self.domain, parse(xml))

    def _compare_within(self, level: Element, first: int, last: int, xml: bytes) -> Delta:
        """`first`, `last`: the bytes of this domain that differ; they lie among the children of `level`."""
        starts = [child.start for child in level.children]
        # children follow one another without a gap, so the next one's beginning is the end of each
        low = bisect_right(starts, first) - 1
        high = max(bisect_left(starts, last), low)
        begin = starts[low]
        end = starts[high] if high < len(starts) else level.inner_end
        changed = xml[begin : len(xml) - (len(self.xml) - end)]
        return compare_siblings(level.children[low:high], parse_siblings(changed))


def _common_prefix(one: bytes, other: bytes) -> int:
    """How many bytes both begin with."""
    low, high = 0, min(len(one), len(other))
    while low < high:
        middle = (low + high + 1) // 2
        if one[low:middle] == other[low:middle]:
            low = middle
        else:
            high = middle - 1
    return low


def _common_suffix(one: bytes, other: bytes, most: int) -> int:
    """How many bytes both end with, `most` at most."""
    low, high = 0, most
    while low < high:
        middle = (low + high + 1) // 2
        if one[len(one) - middle : len(one) - low] == other[len(other) - middle : len(other) - low]:
            low = middle
        else:
            high = middle - 1
    return low
