"""A server on a unix socket."""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Iterable
from pathlib import Path

from kvnode.rpc.client import target_of
from kvnode.rpc.runtime import grpc

#: Read and write for owner and group: root's and the launcher user's.
SOCKET_MODE = 0o660
#: Calls that may wait to be begun with. gRPC itself cancels some of those beyond a thousand, without a word.
MOST_WAITING = 20_000
_WAITING_OPTIONS = ("grpc.server.max_pending_requests", "grpc.server.max_pending_requests_hard_limit")


class Server:
    """Serves bound services (:meth:`kvnode.rpc.service.Service.bind`) in the running event loop."""

    def __init__(
        self,
        socket: Path,
        handlers: Iterable[grpc.GenericRpcHandler],
        at_once: int | None = None,
        largest: int | None = None,
    ) -> None:
        """Prepare to serve on ``socket``. Nothing is opened yet.

        Of more than ``at_once`` calls at a time the rest is refused (``RESOURCE_EXHAUSTED``), and so is one whose
        message has more than ``largest`` bytes (4 MiB when None): such a message is not read.
        """
        self._largest = largest
        self._at_once = at_once
        self.socket = socket
        self._handlers = tuple(handlers)
        self._server: grpc.aio.Server | None = None

    async def start(self, owner: tuple[int, int] | None = None, mode: int = SOCKET_MODE) -> None:
        """Make the socket, its directory where it is missing, and serve.

        ``owner`` is the user's and the group's number that the socket is given to. A stale socket of that
        name is replaced.

        Raises:
            OSError: the socket cannot be made.
            ValueError: its path is too long.
        """
        self.socket.parent.mkdir(parents=True, exist_ok=True)
        # Made beside its place and moved there with its rights set, so that nobody connects before they are.
        made = self.socket.with_name(f".{self.socket.name}")
        target = target_of(made)
        options = [("grpc.so_reuseport", 0), *((name, MOST_WAITING) for name in _WAITING_OPTIONS)]
        if self._largest is not None:
            options.append(("grpc.max_receive_message_length", self._largest))
        server = grpc.aio.server(options=options, maximum_concurrent_rpcs=self._at_once)
        server.add_generic_rpc_handlers(self._handlers)
        made.unlink(missing_ok=True)
        try:
            server.add_insecure_port(target)
        except RuntimeError as error:
            raise OSError(f"{self.socket}: cannot be listened on ({error})") from None
        try:
            _give(made, owner, mode)
            made.rename(self.socket)
            await server.start()
        except BaseException:
            await server.stop(None)
            made.unlink(missing_ok=True)
            raise
        self._server = server

    def move(self, socket: Path) -> None:
        """Give the socket another name; those connected stay so."""
        self.socket.rename(socket)
        self.socket = socket

    async def stop(self, grace: float = 1.0) -> None:
        """Take no new calls, give those under way ``grace`` seconds, and remove the socket."""
        server, self._server = self._server, None
        if server is None:
            return
        await server.stop(grace)
        self.socket.unlink(missing_ok=True)


def _give(path: Path, owner: tuple[int, int] | None, mode: int) -> None:
    """Set owner and mode of a socket: of that very file, as its folder's owner may put a link in its place."""
    file = os.open(path, os.O_PATH | os.O_NOFOLLOW | os.O_CLOEXEC)
    try:
        if not stat.S_ISSOCK(os.fstat(file).st_mode):
            raise OSError(errno.ENOTSOCK, os.strerror(errno.ENOTSOCK), str(path))
        this = f"/proc/self/fd/{file}"
        Path(this).chmod(mode)
        if owner is not None:
            os.chown(this, *owner)
    finally:
        os.close(file)
