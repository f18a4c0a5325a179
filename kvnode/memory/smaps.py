"""Read /proc/PID/smaps, smaps_rollup and status. Sizes are in bytes.

A mapping's line and the fields below it are described in proc(5). Pages of hugetlbfs are in no Rss or Pss:
they have fields of their own, which are added here.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

_HEADER = re.compile(r"([0-9a-f]+)-([0-9a-f]+) (\S{4}) [0-9a-f]+ \S+ \d+ *(.*)")
_FIELD = re.compile(r"(\w+): +(\d+) kB")


@dataclass(frozen=True)
class Mapping:
    """One mapping of a process, or all of them in one (the rollup)."""

    start: int
    size: int
    permissions: str
    name: str
    """Path, ``[heap]`` or the like; empty for anonymous memory."""

    resident: int
    proportional: int
    huge: int
    """Of ``resident``: pages of hugetlbfs."""


@dataclass(frozen=True)
class StatusSizes:
    """Sizes from /proc/PID/status."""

    peak: int
    """VmHWM: the highest resident set; pages of hugetlbfs are not in it."""

    page_tables: int
    """VmPTE."""


def parse_smaps(text: str) -> Iterator[Mapping]:
    """Yield the mappings of smaps or smaps_rollup, in order; raises ValueError when the text is neither."""
    header: re.Match[str] | None = None
    fields: dict[str, int] = {}
    for line in text.splitlines():
        field = _FIELD.match(line)
        if field is not None:
            fields[field[1]] = int(field[2]) << 10
            continue
        found = _HEADER.match(line)
        if found is None:
            if header is None:
                raise ValueError(f"not the content of smaps: {line[:60]!r}")
            continue  # VmFlags and what later kernels add
        if header is not None:
            yield _mapping(header, fields)
        header, fields = found, {}
    if header is not None:
        yield _mapping(header, fields)


def _mapping(header: re.Match[str], fields: dict[str, int]) -> Mapping:
    start, end = int(header[1], 16), int(header[2], 16)
    huge = fields.get("Private_Hugetlb", 0) + fields.get("Shared_Hugetlb", 0)
    return Mapping(
        start=start,
        size=end - start,
        permissions=header[3],
        name=header[4].strip(),
        resident=fields.get("Rss", 0) + huge,
        proportional=fields.get("Pss", 0) + huge,
        huge=huge,
    )


def parse_status(text: str) -> StatusSizes:
    """Read the sizes in /proc/PID/status; a field that is absent (a kernel thread, a zombie) is 0."""
    fields = {
        found[1]: int(found[2]) << 10 for found in re.finditer(r"^(\w+):\s+(\d+) kB$", text, re.MULTILINE)
    }
    return StatusSizes(fields.get("VmHWM", 0), fields.get("VmPTE", 0))


@dataclass(frozen=True)
class GuestMemory:
    """A guest's RAM as its QEMU maps it."""

    resident: int
    proportional: int
    backing: str
    """``anonymous``, ``memfd``, ``file`` or ``hugepages``."""


def guest_memory(mappings: Iterable[Mapping], ram: Iterable[int]) -> GuestMemory | None:
    """Find a guest's RAM among QEMU's mappings; None when there is none.

    ``ram`` holds the sizes of the guest's RAM blocks in bytes (one, or one a NUMA cell). RAM is what a memory
    backend names (``memory-backend-memfd`` …), what is mapped from hugetlbfs, or an anonymous mapping of
    exactly a block's size. The kernel may have split a block (a page's protection changed, transparent huge
    pages): neighbours that together have a block's size count too.
    """
    found = list(mappings)
    named = [m for m in found if "memory-backend" in m.name or m.huge or "hugepages/" in m.name]
    if named:
        return _sum(named, _backing(named))
    sizes = set(ram)
    exact = [m for m in found if not m.name and m.size in sizes]
    if exact:
        return _sum(exact, "anonymous")
    joined = next((run for size in sizes for run in _runs_of(found, size)), None)
    return _sum(joined, "anonymous") if joined else None


def _backing(mappings: list[Mapping]) -> str:
    if any(m.huge or "hugepages/" in m.name for m in mappings):
        return "hugepages"
    return "memfd" if any("memfd" in m.name for m in mappings) else "file"


def _runs_of(mappings: list[Mapping], size: int) -> Iterator[list[Mapping]]:
    """Yield the runs of adjacent anonymous mappings that have exactly ``size`` together."""
    for first, mapping in enumerate(mappings):
        total, end = 0, mapping.start
        for last in range(first, len(mappings)):
            current = mappings[last]
            if current.name or current.start != end or total + current.size > size:
                break
            total, end = total + current.size, current.start + current.size
            if total == size:
                yield mappings[first : last + 1]
                break


def _sum(mappings: list[Mapping], backing: str) -> GuestMemory:
    return GuestMemory(sum(m.resident for m in mappings), sum(m.proportional for m in mappings), backing)
