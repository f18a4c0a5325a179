"""The figures of a process beside those of a library that reads them for itself."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from kvnode.memory.smaps import parse_smaps, parse_status

MIB = 1 << 20
TOUCHED = 40 * MIB
_SCRIPT = f"block = bytearray(b'x') * {TOUCHED}; print(flush=True); input()"


@pytest.fixture
def sleeper() -> Iterator[int]:
    """A process that has touched its memory and sleeps."""
    command = [sys.executable, "-c", _SCRIPT]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        process.stdout.readline()
        yield process.pid
        process.kill()


def test_a_process_has_the_same_sizes(sleeper: int) -> None:
    mappings = list(parse_smaps(Path(f"/proc/{sleeper}/smaps").read_text()))
    (rollup,) = parse_smaps(Path(f"/proc/{sleeper}/smaps_rollup").read_text())
    status = parse_status(Path(f"/proc/{sleeper}/status").read_text())
    theirs = psutil.Process(sleeper).memory_full_info()
    # What is shared with others is dealt out anew when one of them ends, and counted page by page.
    for proportional in (rollup.proportional, sum(one.proportional for one in mappings)):
        assert proportional == pytest.approx(theirs.pss, abs=2 * MIB)
    assert rollup.resident == pytest.approx(theirs.rss, abs=MIB)
    assert sum(one.resident for one in mappings) == rollup.resident
    assert status.peak >= rollup.resident
    assert theirs.uss <= rollup.proportional + 2 * MIB
    assert rollup.proportional > TOUCHED
