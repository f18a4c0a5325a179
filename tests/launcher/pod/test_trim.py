"""What may be given back of a process's memory, and that it goes on after that."""

from __future__ import annotations

import asyncio
import gc
import subprocess
import sys
from collections.abc import Iterator

import pytest

from kvnode.launcher.pod import trim
from kvnode.launcher.pod.trim import Trimmer, clean_code

SMAPS = """\
7f00-7f10 r-xp 00000000 00:00 77 /lib/clean.so
Rss: 4 kB
Private_Dirty:         0 kB
7f20-7f30 r-xp 00000000 00:00 78 /lib/patched.so
Private_Dirty:         4 kB
7f40-7f50 r--p 00000000 00:00 77 /lib/clean.so
Private_Dirty:         0 kB
7f60-7f70 rw-p 00000000 00:00 77 /lib/clean.so
Private_Dirty:         0 kB
7f80-7f90 r-xp 00000000 00:00 0 [vdso]
Private_Dirty:         0 kB
"""


def test_only_code_of_files_that_nobody_changed() -> None:
    assert list(clean_code(SMAPS)) == [(0x7F00, 0x10)]


def test_a_process_goes_on_and_is_smaller() -> None:
    script = """
import json, decimal, xml.etree.ElementTree as ET, ctypes, libvirt
from kvnode.launcher.pod.trim import give_back
def resident():
    return int(open("/proc/self/statm").read().split()[1])
before = resident()
give_back()
after = resident()
assert json.loads("[1]") == [1] and ET.fromstring("<a/>").tag == "a" and libvirt.getVersion() > 0
print(before, after)
"""
    output = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True).stdout
    before, after = map(int, output.split())
    assert after < before


@pytest.fixture
def given(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[float]]:
    """When memory was given back, by the loop's clock."""
    times: list[float] = []
    monkeypatch.setattr(trim, "give_back", lambda: times.append(asyncio.get_running_loop().time()))
    yield times
    gc.unfreeze()


def test_again_and_again_after_the_guests_start(given: list[float]) -> None:
    asyncio.run(lives(given))


async def lives(given: list[float]) -> None:
    """A guest's life, in short."""
    trimmer = Trimmer(asyncio.get_running_loop(), (0.01, 0.03))
    trimmer.trim()
    frozen = gc.get_freeze_count()
    assert frozen > 0
    await asyncio.sleep(0.1)
    assert len(given) == 1, "not before the guest runs"
    trimmer.start()
    trimmer.start()
    while len(given) < 4:
        await asyncio.sleep(0.01)
    first, second, third = (later - given[1] for later in given[1:4])
    assert first == 0
    assert 0.03 <= second < third
    assert third - second >= 0.03, "the last pause comes again"
    assert gc.get_freeze_count() <= frozen, "what lives later can be collected"
    trimmer.stop()
    count = len(given)
    await asyncio.sleep(0.1)
    assert len(given) == count
