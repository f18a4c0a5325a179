"""``python -m tests.agent.podded FOLDER``: many launchers that run no guest, each a process of its own.

Reads ``FOLDER/launchers.json``, a list of ``{namespace, name, uid, pod, eats}``, where ``eats`` is how many bytes of
memory it takes beyond what it needs. Each launcher lives below a monitor in a
PID namespace and a mount namespace of its own, as in a pod, serves cmd.v1 on the socket in its pod's folder below
``FOLDER/p``, and appends a line ``name nanoseconds`` (CLOCK_MONOTONIC) to ``FOLDER/syncs`` for each Sync. They are
forked from one process, so that two hundred fit into a small machine, and end with it.
"""

from __future__ import annotations

import asyncio
import ctypes
import json
import os
import signal
import sys
import time
from pathlib import Path
from typing import Any

from kvnode.rpc.cmd_v1_pb2 import Response
from kvnode.standalone import linux
from tests.agent.standin import StandIn

_PR_SET_PDEATHSIG = 1
_LIBC = ctypes.CDLL(None, use_errno=True)


class Launcher(StandIn):
    """Starts its guest at the first Sync, and writes every Sync down."""

    def __init__(self, folder: Path, about: dict[str, Any], log: int) -> None:
        """`log` is a descriptor that is appended to."""
        vmi = {"metadata": {name: about[name] for name in ("namespace", "name", "uid")}}
        super().__init__(folder / "p", Path("/"), about["pod"], vmi)
        self._log = log
        # Pages of its own, written to.
        self.eaten = bytearray(b"x") * about.get("eats", 0)

    async def _sync(self, request: Any, context: object) -> Response:
        os.write(self._log, f"{self.name} {time.monotonic_ns()}\n".encode())
        first = self.state is None
        answer = await super()._sync(request, context)
        self.calls.clear()
        self.asked.clear()
        if first:
            self._told = asyncio.ensure_future(self.tell("ADDED"))
        return answer


def end_with_parent() -> None:
    """Have the kernel end this process when its parent ends (prctl(2))."""
    _LIBC.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)


def monitor(folder: Path, about: dict[str, Any], log: int) -> None:
    """The first process of the namespaces: starts the launcher and waits for it."""
    end_with_parent()
    linux.unshare(linux.CLONE_NEWNS)
    linux.mount("none", "/", "", linux.MS_REC | linux.MS_PRIVATE)
    linux.mount("tmpfs", "/run", "tmpfs", 0)
    launcher = os.fork()
    if launcher:
        os.waitpid(launcher, 0)
        return
    end_with_parent()

    async def serve() -> None:
        await Launcher(folder, about, log).start()
        await asyncio.Event().wait()

    asyncio.run(serve())


def main() -> None:
    """Start all launchers and wait to be killed."""
    folder = Path(sys.argv[1])
    log = os.open(folder / "syncs", os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
    own = os.open("/proc/self/ns/pid", os.O_RDONLY)
    for about in json.loads((folder / "launchers.json").read_text()):
        linux.unshare(linux.CLONE_NEWPID)  # of the next child
        if os.fork() == 0:
            monitor(folder, about, log)
            os._exit(0)
        if _LIBC.setns(own, linux.CLONE_NEWPID):
            raise OSError(ctypes.get_errno(), "setns")
    signal.pause()


if __name__ == "__main__":
    main()
