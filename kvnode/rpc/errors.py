"""The one exception of remote calls."""

from __future__ import annotations

from google.protobuf.message import Message


class RpcError(Exception):
    """A call that failed, or was answered with a refusal.

    ``rpc`` is the method's name (``SyncVirtualMachine``); ``message`` says what happened; ``code`` is the
    name of gRPC's status code (``UNAVAILABLE``), or "" when the call went through and the answer said that
    it did not succeed. ``response`` is that answer, if there is one.

    A server's handler raises it as well, to fail the call itself: with ``code``, or ``UNKNOWN`` without one.
    """

    def __init__(self, rpc: str, message: str, code: str = "", response: Message | None = None) -> None:
        super().__init__(rpc, message, code)
        self.rpc = rpc
        self.message = message
        self.code = code
        self.response = response

    def __str__(self) -> str:
        status = f" ({self.code})" if self.code else ""
        return f"{self.rpc}{status}: {self.message or 'failed without a reason'}"

    @property
    def disconnected(self) -> bool:
        """The connection went away under the call, or nobody is behind the socket any more.

        The reference counts the first alone (``pkg/virt-handler/cmd-client/errors.go:IsDisconnected``),
        though for a caller that holds a connection both mean the same.
        """
        return self.code in ("CANCELLED", "UNAVAILABLE")

    @property
    def unimplemented(self) -> bool:
        """The other side is older and does not know the method."""
        return self.code == "UNIMPLEMENTED"


class VersionError(Exception):
    """Two sides that have no version of a protocol in common."""
