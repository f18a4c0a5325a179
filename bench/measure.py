"""Timing: several things in turn, round after round, and the best round of each.

The best of interleaved rounds is the steadiest figure on a machine that others use too: what disturbs one
disturbs the others, and no round can be faster than the work takes.
"""

from __future__ import annotations

import gc
import statistics
import subprocess
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from time import perf_counter

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent

Work = Callable[[], object]


def interleaved(works: Mapping[str, Work], rounds: int) -> dict[str, float]:
    """The best time of each in seconds, over rounds in which all take turns."""
    best = dict.fromkeys(works, float("inf"))
    gc.collect()
    gc.disable()
    try:
        for _ in range(rounds):
            for name, work in works.items():
                start = perf_counter()
                work()
                best[name] = min(best[name], perf_counter() - start)
    finally:
        gc.enable()
    return best


class PlainThreads:
    """A plain C loop on one thread and on two: what the cores give. Each run adds to the best times, in seconds."""

    def __init__(self, scratch: Path) -> None:
        self.one = self.two = float("inf")
        self._program = scratch / "threads"
        subprocess.run(
            ["cc", "-O2", "-pthread", str(HERE / "threads.c"), "-o", str(self._program)], check=True
        )

    def run(self) -> None:
        done = subprocess.run([str(self._program)], capture_output=True, text=True, check=True)
        one, two = map(float, done.stdout.split())
        self.one, self.two = min(self.one, one), min(self.two, two)


COST_OF_IMPORT = """
import resource, sys, time
def resident():
    with open("/proc/self/statm") as f:
        return int(f.read().split()[1]) * resource.getpagesize()
before = resident()
start = time.perf_counter()
import kvnode
convert, context = kvnode.convert, kvnode.ConverterContext
spent = time.perf_counter() - start
print(spent, resident() - before)
"""

GROWTH = """
import resource, sys
from bench.sample import bound, reference_cases
import kvnode
def resident():
    with open("/proc/self/statm") as f:
        return int(f.read().split()[1]) * resource.getpagesize()
cases = bound(reference_cases())
def convert(n):
    for i in range(n):
        vmi, context = cases[i % len(cases)]
        kvnode.convert(vmi, context)
convert(5000)
before = resident()
convert(int(sys.argv[1]))
print(resident() - before)
"""


def _python(code: str, *arguments: str) -> list[float]:
    command = [sys.executable, "-c", code, *arguments]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    return [float(word) for word in done.stdout.split()]


def import_cost(times: int = 15) -> tuple[float, float, int]:
    """Importing the converter: best and median time in seconds, and the bytes it adds to a bare interpreter."""
    costs = [_python(COST_OF_IMPORT) for _ in range(times)]
    seconds = [cost[0] for cost in costs]
    return min(seconds), statistics.median(seconds), int(min(cost[1] for cost in costs))


def growth(conversions: int) -> int:
    """By how many bytes the resident size grows over so many conversions."""
    return int(_python(GROWTH, str(conversions))[0])
