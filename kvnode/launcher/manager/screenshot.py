"""A picture of the guest's screen."""

from __future__ import annotations

import libvirt

from kvnode.launcher.manager.errors import ManagerError
from kvnode.launcher.manager.host import Host

#: Most bytes of a picture: 8K in true colour.
MOST_BYTES = 128 << 20


async def take_screenshot(host: Host) -> tuple[str, bytes]:
    """Media type and content of a picture of the first screen; raises libvirtError, ManagerError."""
    return await host.call(_take, host)


def _take(host: Host) -> tuple[str, bytes]:
    domain = host.domain()
    stream = host.connection.raw.newStream()
    try:
        kind = domain.screenshot(stream, 0, 0)
        picture = _received(stream)
        stream.finish()
    except BaseException:
        _abort(stream)
        raise
    return str(kind), picture


def _received(stream: libvirt.virStream) -> bytes:
    picture = bytearray()
    while chunk := stream.recv(1 << 18):
        picture += chunk
        if len(picture) > MOST_BYTES:
            raise ManagerError(f"the picture has more than {MOST_BYTES} bytes")
    return bytes(picture)


def _abort(stream: libvirt.virStream) -> None:
    try:
        stream.abort()
    except libvirt.libvirtError:
        return
