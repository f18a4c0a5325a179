"""``kvnode webhook`` as a process."""

from __future__ import annotations

import signal
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from tests.cluster.cluster import Cluster


def start(*arguments: object) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "kvnode.cli", "webhook", *map(str, arguments)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def test_without_a_cluster_it_says_so_in_one_line(tmp_path: Path) -> None:
    process = start("--kubeconfig", tmp_path / "none")
    out, err = process.communicate(timeout=180)
    assert (process.returncode, out) == (1, "")
    assert err.startswith(f"kvnode: {tmp_path}/none: ")
    assert err.count("\n") == 1


@pytest.mark.cluster
def test_it_answers_until_it_is_told_to_end(control_plane: Cluster, namespace: str) -> None:
    options = ("--kubeconfig", control_plane.kubeconfig, "--namespace", namespace, "--host", "127.0.0.1")
    process = start(*options, "--port", 0)
    assert process.stderr is not None
    lines = []
    while "listening" not in "".join(lines):
        lines.append(process.stderr.readline())
        assert lines[-1], lines
    assert lines[-1].rstrip().endswith(f"for kvnode-webhook.{namespace}.svc")
    process.send_signal(signal.SIGTERM)
    process.communicate(timeout=180)
    assert process.returncode == 0
    secret = control_plane.request("GET", f"/api/v1/namespaces/{namespace}/secrets/kvnode-webhook")
    assert set(secret["data"]) == {"ca.crt", "ca.key", "tls.crt", "tls.key"}


@pytest.mark.cluster
def test_a_port_that_is_taken_is_named(control_plane: Cluster, namespace: str) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        options = ("--kubeconfig", control_plane.kubeconfig, "--namespace", namespace, "--host", "127.0.0.1")
        process = start(*options, "--port", port)
        _, err = process.communicate(timeout=180)
    last = err.splitlines()[-1]
    assert process.returncode not in (0, 70)
    assert last.startswith("kvnode: ")
    assert str(port) in last
