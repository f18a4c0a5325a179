"""Work in other processes' network namespaces."""

from __future__ import annotations

import os
import socket
import subprocess
from pathlib import Path

import pytest

from kvnode.net.driver import Driver
from kvnode.net.errors import NetError
from kvnode.net.netns import run_in
from kvnode.net.podnetwork import ProcessNamespace
from tests.net.namespaces import Namespace
from tests.reports import report


def _interfaces() -> list[str]:
    return [name for _, name in socket.if_nameindex()]


def _open_files() -> int:
    return len(list(Path("/proc/self/fd").iterdir()))


@report("B42")
def test_a_process_that_is_gone() -> None:
    with subprocess.Popen(["true"]) as process:
        process.wait()
    with pytest.raises(NetError, match=f"process {process.pid}: its network namespace cannot be opened"):
        run_in(process.pid, _interfaces)


def test_ones_own_namespace_is_not_touched() -> None:
    with pytest.raises(NetError, match="no network namespace of its own"):
        run_in(os.getpid(), _interfaces)


@pytest.mark.integration
def test_only_the_work_is_done_there() -> None:
    with Namespace() as pod:
        pod.run("ip", "link", "add", "only-there", "type", "bridge")
        assert "only-there" in run_in(pod.pid, _interfaces)
        with pytest.raises(ZeroDivisionError):
            run_in(pod.pid, lambda: 1 // 0)
    assert "only-there" not in _interfaces()


@report("B42")
@pytest.mark.integration
def test_a_thousand_times_leaves_nothing_open_and_makes_no_namespace() -> None:
    named = Path("/run/netns")
    before_named = list(named.iterdir()) if named.is_dir() else []
    found: list[bool] = []

    def work(driver: Driver) -> None:
        found.append(driver.find("lo") is not None)

    with Namespace() as pod, subprocess.Popen(["true"]) as gone:
        gone.wait()
        ProcessNamespace(pod.pid).run(work)
        before = _open_files()
        for _ in range(1000):
            ProcessNamespace(pod.pid).run(work)
            with pytest.raises(NetError):
                ProcessNamespace(gone.pid).run(work)
        assert _open_files() < before + 100, "what other threads have opened may be among them"
    assert found == [True] * 1001
    assert (list(named.iterdir()) if named.is_dir() else []) == before_named
