"""Gives back memory that only the start needed: what was freed meanwhile, and mapped code that has done its work.

Libraries are mapped page by page as their code runs, and stay so: a third of this process's resident size is code
that sets libraries up. Such pages hold what is in the file; unmapped, they cost nothing, and those that are needed
again come back from the page cache in a microsecond each.
"""

from __future__ import annotations

import ctypes
import gc
import re
from collections.abc import Iterator
from pathlib import Path

from kvnode.launcher.log import logger

_MADV_DONTNEED = 4
# A mapping's first line in smaps: address range, rights, offset, device, inode, file.
_HEAD = re.compile(r"([0-9a-f]+)-([0-9a-f]+) (\S{4}) \S+ \S+ (\d+)")


def trim_memory(smaps: Path = Path("/proc/self/smaps")) -> None:
    """Give back what can be; nothing is raised where the system does not take it."""
    gc.collect()
    gc.freeze()
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
