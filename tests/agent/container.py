"""A process in a root and in mount and PID namespaces of its own that listens at a socket, as a container's does."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

_PROGRAM = """
import ctypes, os, signal, socket, sys
NEW_MOUNTS, NEW_PIDS = 0x20000, 0x20000000
BIND, MOVE, PRIVATE, ALL_BELOW = 0x1000, 0x2000, 0x40000, 0x4000
libc = ctypes.CDLL(None, use_errno=True)
def done(answer):
    assert answer == 0, os.strerror(ctypes.get_errno())
root, path = sys.argv[1:]
listening = socket.socket(socket.AF_UNIX)
listening.bind(path)
done(libc.unshare(NEW_MOUNTS | NEW_PIDS))
if inner := os.fork():
    os.write(1, b"%d\\n" % inner)
    os.waitpid(inner, 0)
    os._exit(0)
libc.prctl(1, signal.SIGKILL)  # goes with its parent
done(libc.mount(b"none", b"/", None, ALL_BELOW | PRIVATE, None))
done(libc.mount(root.encode(), root.encode(), None, BIND, None))
done(libc.mount(b"proc", f"{root}/proc".encode(), b"proc", 0, None))
os.chdir(root)
done(libc.mount(b".", b"/", None, MOVE, None))
os.chroot(".")
os.chdir("/")
listening.listen()
os.write(1, b"ready\\n")
signal.pause()
"""


@dataclass(frozen=True)
class Container:
    """One that lives."""

    pid: int
    root: Path
    """Its root, as it sees it."""

    @property
    def proc(self) -> Path:
        """Its folder in /proc."""
        return Path(f"/proc/{self.pid}")


@contextmanager
def container(root: Path, socket: Path) -> Iterator[Container]:
    """Start one and end it; needs root."""
    (root / "proc").mkdir(parents=True, exist_ok=True)
    socket.parent.mkdir(parents=True, exist_ok=True)
    process = subprocess.Popen(
        [sys.executable, "-c", _PROGRAM, str(root), str(socket)], stdout=subprocess.PIPE, text=True
    )
    try:
        assert process.stdout is not None
        said = [process.stdout.readline(), process.stdout.readline()]
        assert "ready\n" in said
        # In either order.
        pid = next(int(line) for line in said if line != "ready\n")
        yield Container(pid, Path(f"/proc/{pid}/root"))
    finally:
        process.kill()
        process.communicate()
        socket.unlink(missing_ok=True)
