"""Files for QEMU's user, where QEMU does not run as this process's."""

from __future__ import annotations

import os
import pwd
from functools import cache
from pathlib import Path

#: The user that QEMU runs as in a launcher pod (``pkg/ephemeral-disk-utils/utils.go:35``).
QEMU_USER = "qemu"


def give_to_qemu(path: Path) -> None:
    """Make QEMU's user the owner of a file; raises OSError.

    Where there is no such user, or this process may not give files away, the file stays this process's:
    libvirt's dynamic ownership then lets QEMU at it, or QEMU runs as the same user.
    """
    owner = _owner()
    if owner is None or os.geteuid() != 0:
        return
    found = path.stat()
    if (found.st_uid, found.st_gid) != owner:
        os.chown(path, *owner)


@cache
def _owner() -> tuple[int, int] | None:
    try:
        user = pwd.getpwnam(QEMU_USER)
    except KeyError:
        return None
    return user.pw_uid, user.pw_gid
