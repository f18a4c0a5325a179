"""Files inside a launcher's root: no link in it leads out of it (openat2(2), RESOLVE_IN_ROOT).

A launcher may put what it likes into its own root. Paths are resolved as a process would whose root that is, and
what is done is done through the descriptor that came of it, never by the path again.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import struct
from collections.abc import Iterator
from pathlib import Path

_SYS_OPENAT2 = 437
_RESOLVE_NO_MAGICLINKS, _RESOLVE_NO_SYMLINKS, _RESOLVE_IN_ROOT = 0x02, 0x04, 0x10
_HOW = struct.Struct("=QQQ")
_LIBC = ctypes.CDLL(None, use_errno=True)


def open_in_root(root: Path, name: str, flags: int = os.O_PATH, *, follow: bool = True) -> int:
    """A descriptor, to be closed, of ``name`` below ``root``; raises OSError, which names the file.

    ``flags`` are those of open(2); O_CLOEXEC is added. With ``follow`` false, a link anywhere in ``name`` fails it.
    """
    top = os.open(root, os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        resolve = _RESOLVE_IN_ROOT | (_RESOLVE_NO_MAGICLINKS if follow else _RESOLVE_NO_SYMLINKS)
        how = ctypes.create_string_buffer(_HOW.pack(flags | os.O_CLOEXEC, 0, resolve))
        inside = name.lstrip("/") or "."
        opened: int = _LIBC.syscall(_SYS_OPENAT2, top, os.fsencode(inside), how, _HOW.size)
    finally:
        os.close(top)
    if opened < 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number), f"/{inside}")
    return opened


@contextlib.contextmanager
def opened(root: Path, name: str, flags: int = os.O_PATH, *, follow: bool = True) -> Iterator[int]:
    """The same, closed at the end."""
    descriptor = open_in_root(root, name, flags, follow=follow)
    try:
        yield descriptor
    finally:
        os.close(descriptor)


def path_of(descriptor: int) -> Path:
    """A path by which calls that take no descriptor reach the very file that is open."""
    return Path(f"/proc/self/fd/{descriptor}")


def size_in_root(root: Path, name: str) -> int:
    """Size in bytes of a file; raises OSError."""
    with opened(root, name) as file:
        return os.fstat(file).st_size


def give_away(descriptor: int, owner: int) -> None:
    """Give what is open to a user and the group of the same number; raises OSError."""
    found = os.fstat(descriptor)
    if (found.st_uid, found.st_gid) != (owner, owner):
        os.chown(path_of(descriptor), owner, owner)


def names_in_root(root: Path, name: str) -> list[str]:
    """Names in a folder, none when it is not there; raises OSError for anything else."""
    try:
        with opened(root, name, os.O_RDONLY | os.O_DIRECTORY) as folder:
            return sorted(one.name for one in os.scandir(folder))
    except FileNotFoundError:
        return []
