"""The right to serve on low ports, handed down to programs that this one becomes or starts: the launcher's DHCP
servers are on port 67. (capabilities(7), "ambient".)
"""

from __future__ import annotations

import ctypes
import os

_NET_BIND_SERVICE = 10
_PR_CAP_AMBIENT, _PR_CAP_AMBIENT_RAISE = 47, 2
_VERSION_3 = 0x20080522


class _Header(ctypes.Structure):
    _fields_ = (("version", ctypes.c_uint32), ("pid", ctypes.c_int))


class _Data(ctypes.Structure):
    _fields_ = (
        ("effective", ctypes.c_uint32),
        ("permitted", ctypes.c_uint32),
        ("inheritable", ctypes.c_uint32),
    )


def raise_net_bind_service() -> None:
    """Put CAP_NET_BIND_SERVICE into the ambient set; raises OSError where this process does not have it."""
    libc = ctypes.CDLL(None, use_errno=True)
    header, data = _Header(_VERSION_3, 0), (_Data * 2)()
    _check(libc.capget(ctypes.byref(header), data))
    data[0].inheritable |= 1 << _NET_BIND_SERVICE
    _check(libc.capset(ctypes.byref(header), data))
    _check(libc.prctl(_PR_CAP_AMBIENT, _PR_CAP_AMBIENT_RAISE, _NET_BIND_SERVICE, 0, 0))


def _check(result: int) -> None:
    if result != 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))
