"""Bind mounts from one process' mount namespace into another's (open_tree(2), move_mount(2), mount_setattr(2)).

A mount is copied where it is, and moved as a descriptor: no path of either side is looked up by the other, and
nothing is left on the node itself. It is gone with the launcher's namespace, whatever becomes of the agent.
"""

from __future__ import annotations

import ctypes
import os
import struct
import threading
from collections.abc import Callable
from pathlib import Path
from typing import BinaryIO

_OPEN_TREE, _MOVE_MOUNT, _MOUNT_SETATTR = 428, 429, 442
_OPEN_TREE_CLONE, _AT_EMPTY_PATH = 1, 0x1000
_FROM_EMPTY, _TO_EMPTY = 0x04, 0x40
_READ_ONLY, _NO_SUID, _NO_DEV, _NO_EXEC = 0x01, 0x02, 0x04, 0x08
_ATTRIBUTES = struct.Struct("=QQQQ")
_CLONE_FS, _CLONE_NEWNS = 0x200, 0x20000
_DETACH, _NO_FOLLOW = 2, 8
_LIBC = ctypes.CDLL(None, use_errno=True)


def bind(source: int, holder: Path, target: int, launcher: Path) -> None:
    """Mount the open file ``source`` read-only over ``target``; each is of the namespace of its process.

    Processes are named by their folders in /proc.

    Raises OSError.
    """

    def body() -> None:
        # Both are opened first: in a container's own /proc the other's process is not to be seen.
        with _namespace(holder) as there, _namespace(launcher) as here:
            move(there.fileno(), here.fileno())

    def move(there: int, here: int) -> None:
        _enter(there)
        tree = _call("open_tree", _OPEN_TREE, source, b"", _OPEN_TREE_CLONE | _AT_EMPTY_PATH | os.O_CLOEXEC)
        try:
            wanted = _ATTRIBUTES.pack(_READ_ONLY | _NO_SUID | _NO_DEV | _NO_EXEC, 0, 0, 0)
            buffer = ctypes.create_string_buffer(wanted)
            _call("mount_setattr", _MOUNT_SETATTR, tree, b"", _AT_EMPTY_PATH, buffer, _ATTRIBUTES.size)
            _enter(here)
            _call("move_mount", _MOVE_MOUNT, tree, b"", target, b"", _FROM_EMPTY | _TO_EMPTY)
        finally:
            os.close(tree)

    _apart(body)


def unmount(folder: int, name: str, launcher: Path) -> None:
    """Take away the mount that is on top of ``name`` in the open ``folder``; raises OSError."""

    def body() -> None:
        with _namespace(launcher) as here:
            _enter(here.fileno())
        # By no path of /proc, which is the container's own now.
        os.fchdir(folder)
        if _LIBC.umount2(os.fsencode(name), _DETACH | _NO_FOLLOW) < 0:
            raise _last("umount")

    _apart(body)


def mount_id(descriptor: int) -> int:
    """Number of the mount that an open file is of (proc(5), fdinfo)."""
    for line in Path(f"/proc/self/fdinfo/{descriptor}").read_text().splitlines():
        if line.startswith("mnt_id:"):
            return int(line.split()[1])
    raise OSError("fdinfo names no mount")


def _namespace(process: Path) -> BinaryIO:
    return open(process / "ns/mnt", "rb")  # noqa: PTH123  (a descriptor is all that is wanted)


def _enter(namespace: int) -> None:
    if _LIBC.setns(namespace, _CLONE_NEWNS) < 0:
        raise _last("setns")


def _leave() -> None:
    """Share working folder and root with no other thread: the kernel asks for it before a change of namespace."""
    if _LIBC.unshare(_CLONE_FS) < 0:
        raise _last("unshare")


def _apart(body: Callable[[], None]) -> None:
    """Run in a thread of its own, which may change its namespace and ends with it."""
    failures: list[BaseException] = []

    def run() -> None:
        try:
            _leave()
            body()
        except BaseException as error:  # handed to the caller
            failures.append(error)

    thread = threading.Thread(target=run, name="mount")
    thread.start()
    thread.join()
    if failures:
        raise failures[0]


def _call(what: str, number: int, *arguments: object) -> int:
    # The kernel takes whole registers: a bare int would go as 32 bits.
    given = [ctypes.c_long(one) if isinstance(one, int) else one for one in arguments]
    answer: int = _LIBC.syscall(ctypes.c_long(number), *given)
    if answer < 0:
        raise _last(what)
    return answer


def _last(what: str) -> OSError:
    number = ctypes.get_errno()
    return OSError(number, f"{what}: {os.strerror(number)}")
