"""What the library costs a process: memory and the time to import it."""

import subprocess
import sys

GROWTH = """
import resource, sys
from bench.sample import bound, reference_cases
import kvnode
def resident():
    with open("/proc/self/statm") as f:
        return int(f.read().split()[1]) * resource.getpagesize()
cases = bound(reference_cases())
broken = [b'{"metadata":{"name":1}}', b"{", b'{"metadata":{"name":"\\\\u0001"}}']
def rounds(n):
    done = 0
    while done < n:
        for vmi, context in cases:
            kvnode.convert(vmi, context)
        for vmi in broken:
            try:
                kvnode.convert(vmi, cases[0][1])
            except kvnode.ConversionError:
                pass
        kvnode.convert_many([vmi for vmi, _ in cases[:50]], cases[0][1], threads=2, return_errors=True)
        done += len(cases)
rounds(3000)
for _ in range(3):
    before = resident()
    rounds(20000)
    print(resident() - before)
"""

COST = """
import resource, time
def resident():
    with open("/proc/self/statm") as f:
        return int(f.read().split()[1]) * resource.getpagesize()
before = resident()
start = time.process_time()
import kvnode
kvnode.convert
kvnode.ConverterContext
print(time.process_time() - start, resident() - before)
"""


def run(code: str) -> list[float]:
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return [float(word) for word in done.stdout.split()]


def test_conversions_leave_no_memory_behind():
    # a leak of 16 bytes a conversion would be 320,000, each time; an arena that another thread of the two gets is not
    assert min(run(GROWTH)) < 256 * 1024


def test_importing_the_converter_is_cheap():
    costs = [run(COST) for _ in range(7)]
    assert min(seconds for seconds, _ in costs) < 0.030
    assert min(size for _, size in costs) < 10 * 2**20
