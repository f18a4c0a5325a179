"""Making a tap (``cmd/virt-chroot/tap-device-maker.go``).

A program of its own too, ``python -m kvnode.net.tap NAME OWNER QUEUES``: a tap has the SELinux label of the program
that makes it, so with SELinux one is started with the launcher's label.
"""

from __future__ import annotations

import errno
import fcntl
import os
import struct
import subprocess
import sys
import time
from pathlib import Path

from kvnode.net.errors import NetError

_TUN = Path("/dev/net/tun")
_SELINUX = Path("/sys/fs/selinux")
_TUNSETIFF, _TUNSETPERSIST, _TUNSETOWNER, _TUNSETGROUP = 0x400454CA, 0x400454CB, 0x400454CC, 0x400454CE
_IFF_TAP, _IFF_NO_PI, _IFF_ONE_QUEUE, _IFF_MULTI_QUEUE, _IFF_TUN_EXCL = 0x2, 0x1000, 0x2000, 0x100, 0x8000
_REQUEST = struct.Struct("=16sH22x")
_TRIES = 5
_PAUSE = 0.2
_TIMEOUT = 60.0


def create(name: str, *, owner: int, queues: int, pid: int) -> None:
    """Make a tap in the caller's network namespace that ``owner``, user and group, may open.

    Raises NetError.
    """
    if not _SELINUX.is_dir() or not any(_SELINUX.iterdir()):
        _create(name, owner, queues)
        return
    try:
        label = Path(f"/proc/{pid}/attr/current").read_bytes()
        # Of this thread, for the next program that it starts.
        Path("/proc/thread-self/attr/exec").write_bytes(label)
        command = [sys.executable, "-m", __name__, name, str(owner), str(queues)]
        done = subprocess.run(command, capture_output=True, text=True, timeout=_TIMEOUT, check=False)
    except (OSError, subprocess.TimeoutExpired) as error:
        raise NetError(f"the tap cannot be made with the launcher's SELinux label: {error}") from None
    if done.returncode != 0:
        raise NetError(done.stderr.strip() or f"the tap's maker ended with {done.returncode}")


def _create(name: str, owner: int, queues: int) -> None:
    several = _IFF_MULTI_QUEUE if queues > 1 else _IFF_ONE_QUEUE
    request = _REQUEST.pack(name.encode(), _IFF_TAP | _IFF_NO_PI | _IFF_TUN_EXCL | several)
    try:
        device = os.open(_TUN, os.O_RDWR | os.O_CLOEXEC)
        try:
            _set_name(device, request)
            fcntl.ioctl(device, _TUNSETOWNER, owner)
            fcntl.ioctl(device, _TUNSETGROUP, owner)
            fcntl.ioctl(device, _TUNSETPERSIST, 1)
        finally:
            os.close(device)
    except OSError as error:
        raise NetError(f"the tap cannot be made: {_TUN}: {error.strerror}") from None


def _set_name(device: int, request: bytes) -> None:
    for left in reversed(range(_TRIES)):
        try:
            fcntl.ioctl(device, _TUNSETIFF, request)
        except OSError as error:
            # Kernels have been seen to refuse for a moment; a name that is taken stays taken.
            if not left or error.errno not in {errno.EAGAIN, errno.ENOMEM, errno.EINTR}:
                raise
            time.sleep(_PAUSE)
        else:
            return


def main(arguments: list[str]) -> int:
    """Run the program."""
    name, owner, queues = arguments
    try:
        _create(name, int(owner), int(queues))
    except NetError as error:
        print(error, file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
