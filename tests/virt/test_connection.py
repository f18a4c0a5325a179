"""A connection has its deadline whatever stands at the other end of the socket."""

from __future__ import annotations

import socket
from pathlib import Path

import pytest

from kvnode.virt.connection import Connection
from kvnode.virt.errors import VirtError


def connection_to(path: Path) -> Connection:
    """A connection to a libvirt daemon on that socket, not opened yet."""
    return Connection(f"qemu+unix:///system?socket={path}", lambda *_: None, lambda: None)


def test_a_daemon_that_takes_a_connection_and_never_answers(tmp_path: Path) -> None:
    """libvirt itself waits for it for ever, as for a daemon that is stopped."""
    with socket.socket(socket.AF_UNIX) as daemon:
        daemon.bind(str(tmp_path / "s"))
        daemon.listen()
        connection = connection_to(tmp_path / "s")
        for _ in range(2):
            with pytest.raises(VirtError, match=r"within 0\.4 s: it takes the connection, and says nothing"):
                connection.open(0.4)
        connection.close()
        daemon.accept()[0].close()  # and the one call that waited ends
        daemon.setblocking(False)
        with pytest.raises(BlockingIOError):
            daemon.accept()


def test_a_socket_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(VirtError, match=r"no libvirt daemon answered within 0\.2 s"):
        connection_to(tmp_path / "s").open(0.2)
