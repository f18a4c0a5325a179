"""Work in another process's network namespace.

A namespace is a thread's own affair: the work is done by a thread that enters it, never leaves it and ends. Nothing
that the agent's other threads do can land there, and none of them is left there by a failure.
"""

from __future__ import annotations

import ctypes
import os
import threading
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

from kvnode.net.errors import NetError

_CLONE_NEWNET = 0x40000000
_LIBC = ctypes.CDLL(None, use_errno=True)

Result = TypeVar("Result")


def run_in(pid: int, work: Callable[[], Result], proc: Path | None = None) -> Result:
    """Do ``work`` in the network namespace of process ``pid``, whose folder in /proc is ``proc``; blocks.

    Raises NetError when the process is gone, or lives in the caller's own namespace: that is the node's, and
    not to be changed. What ``work`` raises comes out.
    """
    proc = proc or Path(f"/proc/{pid}")
    try:
        namespace = os.open(proc / "ns/net", os.O_RDONLY | os.O_CLOEXEC)
    except OSError as error:
        raise NetError(f"process {pid}: its network namespace cannot be opened: {error.strerror}") from None
    try:
        if os.path.samestat(os.fstat(namespace), Path("/proc/self/ns/net").stat()):
            raise NetError(f"process {pid}: has no network namespace of its own")
        return _in_thread(namespace, pid, work)
    finally:
        os.close(namespace)


def _in_thread(namespace: int, pid: int, work: Callable[[], Result]) -> Result:
    results: list[Result] = []
    errors: list[BaseException] = []

    def body() -> None:
        try:
            _enter(namespace, pid)
            results.append(work())
        except BaseException as error:
            errors.append(error)

    thread = threading.Thread(target=body, name=f"netns-{pid}")
    thread.start()
    thread.join()
    if errors:
        # Else the traceback keeps the thread's frames, and with them this list, in a cycle.
        raise errors.pop()
    return results[0]


def _enter(namespace: int, pid: int) -> None:
    if _LIBC.setns(namespace, _CLONE_NEWNET) != 0:
        reason = os.strerror(ctypes.get_errno())
        raise NetError(f"process {pid}: its network namespace cannot be entered: {reason}")
