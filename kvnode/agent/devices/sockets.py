"""Daemons of the node whose socket many pods may share (``socket_device.go``)."""

from __future__ import annotations

import logging
import os
import stat
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from kvnode.agent.devices.offer import NAMESPACE, Unit
from kvnode.agent.ownership import QEMU_USER
from kvnode.agent.rootfs import give_away, opened
from kvnode.rpc import deviceplugin_v1beta1_pb2 as api

logger = logging.getLogger(__name__)

RESERVATIONS = "/var/run/kubevirt/daemons/pr/pr-helper.sock"
"""qemu-pr-helper's (``pkg/storage/reservation/reservation.go:30-36``)."""


@dataclass(frozen=True, slots=True)
class Daemon:
    """One of them."""

    name: str
    """Of the resource."""
    socket: str
    """Path of its socket, on the node and in pods."""
    is_qemus: bool = False
    """Whether the socket and its folder are given to QEMU's user."""
    may_be_absent: bool = False
    """Whether pods run without it as well."""


class SharedSocket:
    """The offer of a `Daemon`: its folder, mounted into containers."""

    def __init__(self, daemon: Daemon, root: Path, count: int) -> None:
        """`root` is the node's root file system, `count` how many pods may have it."""
        self.daemon = daemon
        self.resource = f"{NAMESPACE}/{daemon.name}"
        self.socket_name = f"kubevirt-{daemon.name}.sock"
        ids = [f"{daemon.name}{number}" for number in range(count)]
        self._units = {healthy: tuple(Unit(one, healthy) for one in ids) for healthy in (True, False)}
        self._root = root

    def prepare(self) -> None:
        """Nothing is to be done: a daemon may start at any time."""

    def units(self) -> Sequence[Unit]:
        """As many as pods may have it, healthy while there is a socket."""
        return self._units[self._is_there() or self.daemon.may_be_absent]

    def allocate(self, ids: Sequence[str]) -> api.ContainerAllocateResponse:  # noqa: ARG002
        """The folder, which outlives a restart of the daemon."""
        if not self.daemon.socket.startswith("/"):
            return api.ContainerAllocateResponse()  # there is to be none
        folder = str(PurePosixPath(self.daemon.socket).parent)
        return api.ContainerAllocateResponse(mounts=[api.Mount(host_path=folder, container_path=folder)])

    def _is_there(self) -> bool:
        """Whether there is a socket, given to whom it is for."""
        path = PurePosixPath(self.daemon.socket)
        try:
            with opened(self._root, str(path)) as socket:
                if not stat.S_ISSOCK(os.fstat(socket).st_mode):
                    return False
                if self.daemon.is_qemus:
                    with opened(self._root, str(path.parent)) as folder:
                        give_away(folder, QEMU_USER)
                    give_away(socket, QEMU_USER)
        except FileNotFoundError:
            return False
        except OSError as error:
            logger.warning("%s: cannot be given to QEMU's user: %s", path, error.strerror)
            return False
        return True
