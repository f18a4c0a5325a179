"""``python -m tests.kube.half_open``, in a network namespace of its own: a watch whose server falls silent.

A second namespace has a server that answers a watch, then is cut off so that nothing of it comes back: no end, no
reset. Prints the seconds until the client noticed.
"""

from __future__ import annotations

import asyncio
import subprocess
import sys
import time

from kvnode.kube.client import Client
from kvnode.kube.config import Configuration
from kvnode.kube.errors import ConnectionFailed
from kvnode.kube.resources import PODS
from kvnode.kube.transport import Liveness
from kvnode.kube.watch import watch

CLIENT, SERVER, PORT = "192.0.2.1", "192.0.2.2", 8080
ANSWER = (
    b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n"
    b"3d\r\n" + b'{"type":"ADDED","object":{"metadata":{"name":"the first"}}}'.ljust(60) + b"\n\r\n"
)
SERVE = f"""
import os, socket, sys, time
print(os.getpid(), flush=True)
sys.stdin.readline()
one = socket.create_server(("{SERVER}", {PORT}))
print("listening", flush=True)
connection, _ = one.accept()
connection.recv(65536)
connection.sendall({ANSWER!r})
time.sleep(1000)
"""


def run(*argv: str) -> None:
    """Run a command that must succeed."""
    subprocess.run(argv, check=True)


def main() -> None:
    """Make the namespaces, run the server and the client."""
    server = subprocess.Popen(
        ["unshare", "--net", "--kill-child", "--fork", sys.executable, "-c", SERVE],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert server.stdin
    assert server.stdout
    try:
        inside = server.stdout.readline().strip()
        enter = ("nsenter", f"--net=/proc/{inside}/ns/net", "ip")
        run("ip", "link", "add", "v0", "type", "veth", "peer", "name", "v1", "netns", inside)
        run("ip", "addr", "add", f"{CLIENT}/24", "dev", "v0")
        run("ip", "link", "set", "v0", "up")
        run(*enter, "addr", "add", f"{SERVER}/24", "dev", "v1")
        run(*enter, "link", "set", "v1", "up")
        server.stdin.write("go\n")
        server.stdin.flush()
        server.stdout.readline()
        print(asyncio.run(_client(enter)))
    finally:
        server.kill()
        server.wait()


async def _client(enter: tuple[str, ...]) -> float:
    liveness = Liveness(idle=1, interval=1, user_timeout=2)
    async with Client(Configuration(f"http://{SERVER}:{PORT}"), liveness=liveness) as client:
        cut = 0.0
        try:
            async for event in watch(client, PODS, "1", seconds=300):
                assert event.object["metadata"]["name"] == "the first"
                run(*enter, "route", "add", "blackhole", f"{CLIENT}/32")
                cut = time.monotonic()
        except ConnectionFailed:
            return time.monotonic() - cut
    raise SystemExit("the watch ended as if in order")


if __name__ == "__main__":
    main()
