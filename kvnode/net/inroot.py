"""Small files below a folder that someone else fills: no link in it leads out of it (openat2(2)).

Links are followed as a process would whose root the folder is.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import secrets
import struct
from collections.abc import Iterator
from pathlib import Path, PurePosixPath

_SYS_OPENAT2 = 437
_RESOLVE_IN_ROOT = 0x10
_RESOLVE_NO_MAGICLINKS = 0x02
_HOW = struct.Struct("=QQQ")
_LIBC = ctypes.CDLL(None, use_errno=True)
_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC


def write(root: Path, name: PurePosixPath, data: bytes, *, mode: int, owner: int) -> None:
    """Write a file whole or not at all, and make its folders; raises OSError.

    ``owner`` is user and group of the file.
    """
    with _folder(root, name.parent, make=True) as folder:
        partial = f".{name.name}.{secrets.token_hex(4)}"
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
        file = os.open(partial, flags, 0o600, dir_fd=folder)
        try:
            try:
                _write_all(file, data)
                os.fchown(file, owner, owner)
                os.fchmod(file, mode)
            finally:
                os.close(file)
            os.rename(partial, name.name, src_dir_fd=folder, dst_dir_fd=folder)
        except OSError:
            with contextlib.suppress(OSError):
                os.unlink(partial, dir_fd=folder)
            raise


def remove(root: Path, name: PurePosixPath) -> None:
    """Remove a file, if it is there; raises OSError."""
    with contextlib.suppress(FileNotFoundError), _folder(root, name.parent, make=False) as folder:
        os.unlink(name.name, dir_fd=folder)


@contextlib.contextmanager
def _folder(root: Path, name: PurePosixPath, *, make: bool) -> Iterator[int]:
    top = os.open(root, _FOLDER)
    folder = -1
    try:
        folder = _descend(top, name, make=make)
        yield folder
    finally:
        if folder >= 0:
            os.close(folder)
        os.close(top)


def _descend(top: int, name: PurePosixPath, *, make: bool) -> int:
    try:
        return _open(top, name)
    except FileNotFoundError:
        if not make or name == name.parent:
            raise
    above = _descend(top, name.parent, make=True)
    try:
        with contextlib.suppress(FileExistsError):
            os.mkdir(name.name, 0o750, dir_fd=above)
    finally:
        os.close(above)
    return _open(top, name)


def _open(top: int, name: PurePosixPath) -> int:
    how = ctypes.create_string_buffer(_HOW.pack(_FOLDER, 0, _RESOLVE_IN_ROOT | _RESOLVE_NO_MAGICLINKS))
    opened: int = _LIBC.syscall(_SYS_OPENAT2, top, os.fsencode(name), how, _HOW.size)
    if opened < 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number), str(name))
    return opened


def _write_all(file: int, data: bytes) -> None:
    while data:
        data = data[os.write(file, data) :]
