"""A process in a mount namespace and a root of its own that listens at a socket, as a container's would."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

_PROGRAM = """
import ctypes, os, signal, socket, sys
root, path = sys.argv[1:]
libc = ctypes.CDLL(None, use_errno=True)
listening = socket.socket(socket.AF_UNIX)
listening.bind(path)
assert libc.unshare(0x20000) == 0, os.strerror(ctypes.get_errno())
assert libc.mount(b"none", b"/", None, 0x4000 | 0x40000, None) == 0, os.strerror(ctypes.get_errno())
os.chroot(root)
os.chdir("/")
listening.listen()
print("ready", flush=True)
signal.pause()
"""


@dataclass(frozen=True)
class Container:
    """One that lives."""

    pid: int
    root: Path
    """Its root, as it sees it."""


@contextmanager
def container(root: Path, socket: Path) -> Iterator[Container]:
    """Start one and end it; needs root."""
    root.mkdir(parents=True, exist_ok=True)
    socket.parent.mkdir(parents=True, exist_ok=True)
    process = subprocess.Popen(
        [sys.executable, "-c", _PROGRAM, str(root), str(socket)], stdout=subprocess.PIPE, text=True
    )
    try:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
        yield Container(process.pid, Path(f"/proc/{process.pid}/root"))
    finally:
        process.kill()
        process.communicate()
        socket.unlink(missing_ok=True)
