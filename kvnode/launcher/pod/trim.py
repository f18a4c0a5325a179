"""Gives back memory that only the start needed: what was freed meanwhile, and mapped code that has done its work.

Libraries are mapped page by page as their code runs, and stay so: a third of this process's resident size is code
that sets libraries up. Such pages hold what is in the file; unmapped, they cost nothing, and those that are needed
again come back from the page cache in a microsecond each.
"""

from __future__ import annotations

import asyncio
import ctypes
import gc
import re
from collections.abc import Iterator, Sequence
from pathlib import Path

from kvnode.launcher.log import logger

#: Seconds from the guest's start until what it needed is given back, and from each time to the next.
TRIM_SECONDS = (5.0, 25.0, 90.0, 600.0)
_MADV_DONTNEED = 4
# A mapping's first line in smaps: address range, rights, offset, device, inode, file.
_HEAD = re.compile(r"([0-9a-f]+)-([0-9a-f]+) (\S{4}) \S+ \S+ (\d+)")


class Trimmer:
    """When memory is given back: when the launcher is ready, then some time after the guest's start, then ever more
    rarely, as what a guest's boot asks for comes sooner or later, and much of it only once.
    """

    def __init__(self, loop: asyncio.AbstractEventLoop, waits: Sequence[float] = TRIM_SECONDS) -> None:
        """``waits`` are the seconds from the guest's start to the first time and from each to the next, the last of
        them again and again.
        """
        self._loop = loop
        self._waits = waits
        self._frozen = False
        self._rounds = 0
        self._timer: asyncio.TimerHandle | None = None

    def start(self) -> None:
        """The guest runs; once it was said, nothing changes when it is said again."""
        if self._timer is None:
            self._arm()

    def stop(self) -> None:
        """Nothing is given back from now on."""
        if self._timer is not None:
            self._timer.cancel()

    def trim(self) -> None:
        """Give back what can be now."""
        gc.collect()
        if not self._frozen:
            # What there is after the start stays; later collections need not look at it. Only once, as what is in a
            # cycle then is never collected.
            gc.freeze()
            self._frozen = True
        give_back()

    def _arm(self) -> None:
        index = min(self._rounds, len(self._waits) - 1)
        self._timer = self._loop.call_later(self._waits[index], self._on_time)

    def _on_time(self) -> None:
        self.trim()
        self._rounds += 1
        self._arm()


def give_back(smaps: Path = Path("/proc/self/smaps")) -> None:
    """Give back free memory and mapped code; nothing is raised where the system does not take it."""
    libc = ctypes.CDLL(None, use_errno=True)
    try:
        libc.malloc_trim(0)
        for start, size in clean_code(smaps.read_text(encoding="utf-8", errors="replace")):
            libc.madvise(ctypes.c_void_p(start), ctypes.c_size_t(size), _MADV_DONTNEED)
    except (OSError, AttributeError) as error:  # no /proc; a C library without malloc_trim
        logger.debug("memory is not given back: %s", error)


def clean_code(smaps: str) -> Iterator[tuple[int, int]]:
    """Address and size of each mapping of a file's code of which no page was ever changed in memory."""
    found: tuple[int, int] | None = None
    for line in smaps.splitlines():
        if head := _HEAD.match(line):
            start, end = int(head[1], 16), int(head[2], 16)
            found = (start, end - start) if head[3] == "r-xp" and head[4] != "0" else None
        elif found is not None and line.startswith("Private_Dirty:"):
            if line.split()[1] == "0":
                yield found
            found = None
