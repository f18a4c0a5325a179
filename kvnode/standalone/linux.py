"""The Linux calls that Python 3.11 lacks: namespaces and mounts."""

from __future__ import annotations

import ctypes
import os

CLONE_NEWNS = 0x00020000
CLONE_NEWPID = 0x20000000

MS_RDONLY = 1
MS_NOSUID = 2
MS_NODEV = 4
MS_NOEXEC = 8
MS_REMOUNT = 32
MS_BIND = 4096
MS_MOVE = 8192
MS_REC = 16384
MS_PRIVATE = 1 << 18

_libc = ctypes.CDLL(None, use_errno=True)


def unshare(flags: int) -> None:
    """Leave the caller's namespaces of the kinds in ``flags`` (unshare(2)); raises OSError."""
    _check(_libc.unshare(ctypes.c_int(flags)), "unshare")


def mount(source: str, target: str, kind: str = "", flags: int = 0, data: str = "") -> None:
    """Mount ``source`` on ``target`` (mount(2)); raises OSError that names the target."""
    result = _libc.mount(
        os.fsencode(source), os.fsencode(target), os.fsencode(kind), ctypes.c_ulong(flags), os.fsencode(data)
    )
    _check(result, target)


def bind(source: str, target: str, *, recursive: bool = True, read_only: bool = False) -> None:
    """Bind ``source`` on ``target``, which must exist; raises OSError that names the target."""
    flags = MS_BIND | (MS_REC if recursive else 0)
    mount(source, target, "", flags)
    if read_only:
        mount("none", target, "", MS_REMOUNT | MS_BIND | MS_RDONLY)


def move(source: str, target: str) -> None:
    """Move the mount at ``source`` to ``target``; raises OSError that names the target."""
    mount(source, target, "", MS_MOVE)


def _check(result: int, what: str) -> None:
    if result != 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number), what)
