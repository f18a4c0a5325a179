"""Processes that are held, so that another of the same PID is never taken for them."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from kvnode.agent.processes import Held

_REUSE = """
import os, pathlib, signal
from kvnode.agent.processes import Held
def child():
    if (pid := os.fork()) == 0:
        signal.pause()
    return pid
first = child()
held = Held(first)
assert held.lives()
print((held.path / "root").is_dir(), (held.path / "stat").read_text().split()[0] == str(first))
os.kill(first, signal.SIGKILL)
os.waitpid(first, 0)
pathlib.Path("/proc/sys/kernel/ns_last_pid").write_text(str(first - 1))
second = child()
assert second == first, (first, second)
assert pathlib.Path(f"/proc/{first}/root").is_dir(), "by its number another is reached"
def reached(name):
    try:
        os.close(os.open(held.path / name, os.O_RDONLY))
    except OSError:
        return False
    return True
print(held.lives(), [name for name in ("root", "ns/net", "ns/mnt", "cgroup") if reached(name)])
os.kill(second, signal.SIGKILL)
"""


@pytest.mark.integration
@pytest.mark.skipif(os.geteuid() != 0, reason="a PID namespace needs root")
def test_a_pid_that_is_another_s_now_leads_nowhere() -> None:
    command = ["unshare", "--pid", "--fork", "--kill-child", "--mount-proc", sys.executable, "-c", _REUSE]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=180)
    assert done.stderr == ""
    assert done.stdout.splitlines() == ["True True", "False []"]


def test_it_is_let_go_with_the_last_who_holds_it() -> None:
    held = Held(os.getpid())
    path = Path(held.path)
    assert (path / "stat").exists()
    reached = path.readlink()
    del held
    # Another thread may have opened something of that number meanwhile.
    assert not path.is_symlink() or path.readlink() != reached


def test_who_is_not_there_cannot_be_held() -> None:
    with subprocess.Popen(["true"]) as gone:
        pass
    with pytest.raises(FileNotFoundError):
        Held(gone.pid)
