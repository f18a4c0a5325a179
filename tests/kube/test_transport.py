"""Connections whose other side is gone without a word."""

from __future__ import annotations

import os
import socket
import subprocess
import sys

import pytest

from kvnode.kube.transport import Liveness, socket_factory


def test_a_dead_connection_is_noticed_within_a_minute() -> None:
    liveness = Liveness()
    assert liveness.idle + liveness.interval + liveness.user_timeout < 60


def test_every_socket_is_probed() -> None:
    address = (socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP, "", ("127.0.0.1", 1))
    with socket_factory(Liveness(idle=7, interval=3, user_timeout=9))(address) as one:
        assert one.getsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE) == 1
        names = ("TCP_KEEPIDLE", "TCP_KEEPINTVL", "TCP_KEEPCNT", "TCP_USER_TIMEOUT")
        values = [one.getsockopt(socket.IPPROTO_TCP, getattr(socket, name)) for name in names]
        assert values == [7, 3, 3, 9000]
        assert not one.getblocking()


@pytest.mark.integration
@pytest.mark.skipif(os.geteuid() != 0, reason="needs root for network namespaces")
def test_a_watch_whose_server_falls_silent_ends() -> None:
    """Probes start after 1 s and may stay without an answer for 2 s; without them it would last for 300 s."""
    command = ["unshare", "--net", sys.executable, "-m", "tests.kube.half_open"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=180, check=False)
    assert done.returncode == 0, done.stderr
    assert 1 <= float(done.stdout) <= 60
