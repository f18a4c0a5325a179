"""The demo guest's cache, which several processes use at once; nothing is built."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tools.guest import build as building

ROOT = Path(__file__).parents[2]
#: Holds the cache from its first line of output on until its standard input ends.
HOLD = """
import sys
from tools.guest import build
with build._locked(build.cache_directory(), print):
    print("held", flush=True)
    sys.stdin.read()
"""


def test_one_build_waits_for_another(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    guest = building.cache_directory() / "images" / f"latest-{building.recipe_key()}"
    guest.mkdir(parents=True)
    for name in (*building.OUTPUTS, building.MANIFEST):
        (guest / name).write_text(name)
    said: list[str] = []
    with subprocess.Popen(
        [sys.executable, "-c", HOLD], stdin=subprocess.PIPE, stdout=subprocess.PIPE, cwd=ROOT
    ) as other:
        assert other.stdout is not None
        assert other.stdout.readline() == b"held\n"

        def say(line: str) -> None:
            said.append(line)
            if other.stdin is not None:
                other.stdin.close()  # it ends, and gives the cache away

        building.build(tmp_path / "out", say)
    assert said == [
        "another build of the guest is running: waiting for it",
        "the guest in the cache is of this recipe: taken as it is",
    ]
    assert (tmp_path / "out/vmlinuz").read_text() == "vmlinuz"
