"""One converter at work in several threads."""

from __future__ import annotations

from itertools import count
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from kvnode._fast.domain import Converter

__all__ = ["run_shares"]


def run_shares(converter: Converter, sources: list[bytes], results: list[object], threads: int) -> int:
    """Fills `results` from `sources`, this thread among `threads`, and answers how many conversions failed.

    What a thread raises is raised here.
    """
    counter = count()
    threads = min(threads, len(sources))
    if threads <= 1:
        return converter.convert_share(sources, results, counter)
    # Loaded here: whoever converts one VMI at a time never pays for it.
    from concurrent.futures import ThreadPoolExecutor  # noqa: PLC0415

    with ThreadPoolExecutor(threads - 1, "kvnode-convert") as pool:
        others = [pool.submit(converter.convert_share, sources, results, counter) for _ in range(threads - 1)]
        failed = converter.convert_share(sources, results, counter)
        return failed + sum(other.result() for other in others)
