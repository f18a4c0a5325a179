"""Errors of libvirt that a test wants to have raised."""

from __future__ import annotations

import libvirt


def libvirt_error(
    message: str = "no", code: int = libvirt.VIR_ERR_OPERATION_FAILED, domain: int = libvirt.VIR_FROM_QEMU
) -> libvirt.libvirtError:
    """libvirt's error of that message and number. Its constructor alone takes the message of the last call that really
    failed in this thread, whichever test made it.
    """
    libvirt.virResetLastError()
    error = libvirt.libvirtError(message)
    error.err = (code, domain, message, 2, "", "", "", -1, -1)
    return error
