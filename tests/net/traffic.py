"""TCP between namespaces."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager

from tests.net.conftest import eventually
from tests.net.namespaces import Namespace

# Says who was reached, and who it was.
_SERVER = """
import socket, sys
server = socket.create_server(("::", int(sys.argv[1])), family=socket.AF_INET6, dualstack_ipv6=True)
print("listening", flush=True)
while True:
    connection, peer = server.accept()
    with connection:
        connection.sendall(f"{sys.argv[2]} {peer[0]}".encode())
"""
_CLIENT = """
import socket, sys
with socket.create_connection((sys.argv[1], int(sys.argv[2])), timeout=10) as connection:
    print(connection.makefile().read())
"""


@contextmanager
def serving(where: Namespace, port: int, name: str) -> Iterator[None]:
    """A TCP server."""
    command = [sys.executable, "-c", _SERVER, str(port), name]
    with where.start(command, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        try:
            assert process.stdout.readline() == "listening\n"
            yield
        finally:
            process.kill()


def reached(where: Namespace, address: str, port: int) -> tuple[str, str]:
    """Who answers, and whom it takes the caller for."""
    answer = eventually(lambda: where.run(sys.executable, "-c", _CLIENT, address, str(port)))
    server, peer = answer.split()
    return server, peer.removeprefix("::ffff:")
