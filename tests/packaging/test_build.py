"""Building from source where something is missing."""

import os
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent.parent


@pytest.fixture
def failing_build(tmp_path):
    """A build in an environment of its own; answers its exit code and what it printed."""
    pytest.importorskip("Cython")

    def build(**environment: str) -> tuple[int, str]:
        command = [sys.executable, "setup.py", "--quiet", "build_ext", "--force"]
        folders = ["--build-lib", str(tmp_path / "lib"), "--build-temp", str(tmp_path / "temp")]
        done = subprocess.run(
            [*command, *folders],
            cwd=ROOT,
            env={**os.environ, **environment},
            capture_output=True,
            text=True,
            check=False,
        )
        assert not list(tmp_path.glob("lib/**/*.so"))
        return done.returncode, done.stdout + done.stderr

    return build


def test_without_simdjson_one_line_says_what_is_missing(failing_build, tmp_path):
    # found before the one that is installed
    (tmp_path / "simdjson.h").write_text("#error not here\n")
    code, printed = failing_build(CPATH=str(tmp_path))
    assert code != 0
    lines = [line for line in printed.splitlines() if "ythoniz" not in line and "Compiling" not in line]
    assert len(lines) == 1
    assert "simdjson" in lines[0]
    assert "libsimdjson-dev" in lines[0]


def test_without_a_compiler_the_same_line_is_said(failing_build):
    code, printed = failing_build(CC="/nowhere/cc", CXX="/nowhere/c++")
    assert code != 0
    assert "C++17 compiler" in printed
    assert "Traceback" not in printed


def test_the_library_does_not_ask_for_libvirt():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    assert not [name for name in project["dependencies"] if "libvirt" in name]
    assert [name for name in project["optional-dependencies"]["node"] if "libvirt" in name]
