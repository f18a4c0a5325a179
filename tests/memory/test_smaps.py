"""Reading smaps, and finding the guest's RAM in it."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kvnode.memory.smaps import guest_memory, parse_smaps, parse_status

MIB = 1 << 20


def mapping(start: int, size: int, name: str = "", *, rss: int = 0, pss: int = 0, huge: int = 0) -> str:
    """A mapping as smaps shows it; sizes in bytes."""
    return (
        f"{start:x}-{start + size:x} rw-p 00000000 00:00 0 {name:>30}\n"
        f"Size: {size >> 10:>18} kB\nKernelPageSize:        4 kB\nRss: {rss >> 10:>18} kB\nPss: {pss >> 10:>12} kB\n"
        f"Private_Hugetlb: {huge >> 10} kB\nShared_Hugetlb:        0 kB\nTHPeligible:    1\n"
        "VmFlags: rd wr mr mw me ac sd\n"
    )


def test_a_mapping_is_read_with_its_name_and_sizes() -> None:
    text = mapping(0x7F0000000000, 8 * MIB, "/usr/bin/a program (deleted)", rss=4 * MIB, pss=2 * MIB)
    (found,) = parse_smaps(text)
    assert found.name == "/usr/bin/a program (deleted)"
    assert (found.start, found.size, found.permissions) == (0x7F0000000000, 8 * MIB, "rw-p")
    assert (found.resident, found.proportional, found.huge) == (4 * MIB, 2 * MIB, 0)


def test_huge_pages_count_although_rss_leaves_them_out() -> None:
    (found,) = parse_smaps(mapping(0x1000, 8 * MIB, "/dev/hugepages/x", huge=6 * MIB))
    assert (found.resident, found.proportional, found.huge) == (6 * MIB, 6 * MIB, 6 * MIB)


def test_this_process_adds_up() -> None:
    # Read one right after the other: reading them needs memory itself.
    texts = [Path(f"/proc/self/{name}").read_text() for name in ("smaps", "smaps_rollup")]
    mappings = list(parse_smaps(texts[0]))
    (rollup,) = parse_smaps(texts[1])
    assert len(mappings) > 10
    # Other threads go on between the two looks.
    assert abs(sum(m.resident for m in mappings) - rollup.resident) < max(2 * MIB, rollup.resident // 20)
    sizes = parse_status(Path("/proc/self/status").read_text())
    assert sizes.peak >= rollup.resident - MIB
    assert 0 < sizes.page_tables < 64 * MIB


def test_sizes_that_are_absent_are_zero() -> None:
    assert parse_status("Name:\tkthreadd\nState:\tS (sleeping)\n") == parse_status("")
    assert parse_status("").peak == 0


def test_what_is_no_smaps_is_refused() -> None:
    with pytest.raises(ValueError, match="not the content of smaps"):
        list(parse_smaps("root:x:0:0::/root:/bin/sh\n"))


@given(st.text(max_size=300))
def test_any_text_is_read_or_refused(text: str) -> None:
    try:
        found = list(parse_smaps(text))
    except ValueError:
        return
    assert all(m.size >= 0 or m.resident >= 0 for m in found)


class TestGuestMemory:
    """Guest RAM by what backs it."""

    OTHER = mapping(0x1000, 4 * MIB, "[heap]", rss=3 * MIB, pss=3 * MIB) + mapping(
        0x900000, 8 * MIB, rss=MIB, pss=MIB
    )

    def test_anonymous_ram_is_the_mapping_of_its_size(self) -> None:
        text = self.OTHER + mapping(0x7F0000000000, 256 * MIB, rss=100 * MIB, pss=100 * MIB)
        found = guest_memory(parse_smaps(text), [256 * MIB])
        assert found is not None
        assert (found.resident, found.backing) == (100 * MIB, "anonymous")

    def test_a_block_that_the_kernel_split_is_put_together(self) -> None:
        start = 0x7F0000000000
        text = self.OTHER + "".join(
            mapping(start + at * MIB, size * MIB, rss=size * MIB)
            for at, size in ((0, 100), (100, 28), (128, 128))
        )
        found = guest_memory(parse_smaps(text), [256 * MIB])
        assert found is not None
        assert found.resident == 256 * MIB

    def test_blocks_that_are_apart_are_not_put_together(self) -> None:
        text = mapping(0x10000000, 128 * MIB) + mapping(0x7F0000000000, 128 * MIB)
        assert guest_memory(parse_smaps(text), [256 * MIB]) is None

    def test_memfd_and_numa_cells(self) -> None:
        text = self.OTHER + "".join(
            mapping(
                0x7F0000000000 + i * 64 * MIB, 64 * MIB, "/memfd:memory-backend-memfd (deleted)", rss=i * MIB
            )
            for i in (1, 2)
        )
        found = guest_memory(parse_smaps(text), [64 * MIB, 64 * MIB])
        assert found is not None
        assert (found.resident, found.backing) == (3 * MIB, "memfd")

    def test_anonymous_numa_cells_of_one_size(self) -> None:
        text = "".join(mapping(0x100000000 * i, 64 * MIB, rss=MIB) for i in (1, 2))
        found = guest_memory(parse_smaps(text), [64 * MIB, 64 * MIB])
        assert found is not None
        assert found.resident == 2 * MIB

    def test_huge_pages(self) -> None:
        text = self.OTHER + mapping(
            0x7F0000000000, 64 * MIB, "/dev/hugepages/libvirt/qemu/1/ram", huge=64 * MIB
        )
        found = guest_memory(parse_smaps(text), [64 * MIB])
        assert found is not None
        assert (found.resident, found.backing) == (64 * MIB, "hugepages")

    def test_none_is_none(self) -> None:
        assert guest_memory(parse_smaps(self.OTHER), [256 * MIB]) is None
