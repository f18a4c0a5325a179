"""A guest's network card: ``python -m tests.net.pump GUEST-PID TAP MULTIQUEUE MTU MAC``.

Started in the pod's namespace. It claims the pod's tap as a launcher would, without any right, makes an interface
``eth0`` in the guest's namespace, and carries frames between the two until its standard input ends.
"""

from __future__ import annotations

import ctypes
import fcntl
import os
import select
import struct
import subprocess
import sys
from pathlib import Path

from kvnode.net.tap import _IFF_MULTI_QUEUE, _IFF_NO_PI, _IFF_TAP, _TUNSETIFF

LAUNCHER = 107
CLONE_NEWNET = 0x40000000
LONGEST = 65536 + 14


def opened(name: str, flags: int = 0, user: int = 0) -> int:
    """A tap's file, claimed by a user who has no more rights than the tap's owner."""
    device = os.open("/dev/net/tun", os.O_RDWR | os.O_NONBLOCK | os.O_CLOEXEC)
    request = struct.pack("16sH22x", name.encode(), _IFF_TAP | _IFF_NO_PI | flags)
    os.setegid(user)
    os.seteuid(user)
    fcntl.ioctl(device, _TUNSETIFF, request)
    os.seteuid(0)
    os.setegid(0)
    return device


def main() -> None:
    """Run."""
    guest, tap, several, mtu, mac = sys.argv[1:]
    outer = opened(tap, _IFF_MULTI_QUEUE if several == "1" else 0, LAUNCHER)
    namespace = os.open(Path("/proc") / guest / "ns/net", os.O_RDONLY)
    assert ctypes.CDLL(None).setns(namespace, CLONE_NEWNET) == 0
    inner = opened("eth0")
    Path("/proc/sys/net/ipv6/conf/eth0/accept_dad").write_text("0")
    for arguments in (("address", mac), ("mtu", mtu), ("up",)):
        subprocess.run(["ip", "link", "set", "eth0", *arguments], check=True)
    print("ready", flush=True)
    other = {outer: inner, inner: outer}
    while True:
        ready, _, _ = select.select([0, outer, inner], [], [])
        if 0 in ready:
            return
        for device in ready:
            try:
                os.write(other[device], os.read(device, LONGEST))
            except (BlockingIOError, OSError):
                # As of a card whose ring is full, or whose other end is switched off: the frame is lost.
                continue


if __name__ == "__main__":
    main()
