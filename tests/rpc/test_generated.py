"""The committed modules are what the compiler gives for protos/ now."""

from __future__ import annotations

import subprocess
import sys

from tools.protos.__main__ import ROOT, stale


def test_the_generated_modules_are_current():
    done = subprocess.run(
        [sys.executable, "-m", "tools.protos", "--check"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")


def test_what_is_stale_is_named(tmp_path):
    (tmp_path / "a_pb2.py").write_bytes(b"old")
    (tmp_path / "b_pb2.py").write_bytes(b"b")
    (tmp_path / "gone_pb2.pyi").write_bytes(b"")
    (tmp_path / "client.py").write_bytes(b"not generated")
    wanted = {"a_pb2.py": b"new", "b_pb2.py": b"b", "c_pb2.pyi": b"c"}
    assert stale(wanted, tmp_path) == [
        "a_pb2.py is out of date",
        "c_pb2.pyi is missing",
        "gone_pb2.pyi has no source",
    ]
