"""The notify service: what a launcher tells its node agent (``kubevirt.notify.v1``)."""

from __future__ import annotations

from pathlib import Path
from typing import Protocol, Self

from google.protobuf.message import Message

from kvnode.rpc import notify_info_pb2, notify_v1_pb2
from kvnode.rpc.client import CONNECT_SECONDS, Channel
from kvnode.rpc.errors import RpcError
from kvnode.rpc.notify_v1_pb2 import DomainEventRequest, K8sEventRequest, Response
from kvnode.rpc.runtime import grpc
from kvnode.rpc.service import Service
from kvnode.rpc.versions import NOTIFY_VERSIONS, highest_common

NOTIFY = Service.of(notify_v1_pb2.DESCRIPTOR, "Notify")
NOTIFY_INFO = Service.of(notify_info_pb2.DESCRIPTOR, "NotifyInfo")

#: Seconds a call may take (``pkg/virt-launcher/notify-client/client.go:defaultSendTimeout``).
SEND_SECONDS = 5.0

#: Values of ``eventType``.
ADDED, MODIFIED, DELETED, ERROR = "ADDED", "MODIFIED", "DELETED", "ERROR"


class NotifyHandler(Protocol):
    """Who hears what launchers say.

    What a method raises as ValueError is answered as a failure with its text; the call itself goes well.
    """

    async def domain_event(self, request: DomainEventRequest) -> None:
        """A domain changed."""

    async def k8s_event(self, request: K8sEventRequest) -> None:
        """An event is to be recorded at the API server."""


def bind_notify(handler: NotifyHandler) -> tuple[grpc.GenericRpcHandler, ...]:
    """Return what a node agent's server registers: both methods, and the version handshake."""

    async def info(_request: object, _context: object) -> Message:
        return notify_info_pb2.NotifyInfoResponse(supportedNotifyVersions=NOTIFY_VERSIONS)

    async def domain_event(request: DomainEventRequest, _context: object) -> Message:
        try:
            await handler.domain_event(request)
        except ValueError as error:
            return Response(success=False, message=str(error))
        return Response(success=True)

    async def k8s_event(request: K8sEventRequest, _context: object) -> Message:
        try:
            await handler.k8s_event(request)
        except ValueError as error:
            return Response(success=False, message=str(error))
        return Response(success=True)

    return (
        NOTIFY_INFO.bind({"Info": info}),
        NOTIFY.bind({"HandleDomainEvent": domain_event, "HandleK8sEvent": k8s_event}),
    )


class NotifyClient:
    """The node agent, as a launcher sees it. It sends once: whoever holds it tries again.

    Every method raises RpcError when the call fails, or when the agent says that it did not succeed
    (``code`` is "" then).
    """

    def __init__(self, socket: Path) -> None:
        """Prepare to talk to the agent on ``socket``; :meth:`open` does so."""
        self.channel = Channel(socket)
        self.version = 0

    @classmethod
    async def open(cls, socket: Path, timeout: float = CONNECT_SECONDS) -> Self:
        """Connect to the agent's pipe and agree on the protocol's version.

        Raises:
            RpcError: nothing answers within ``timeout`` seconds, or what answers is no node agent.
            VersionError: the agent knows no version that this side knows.
        """
        client = cls(socket)
        try:
            await client.channel.connect(timeout)
            answer = await client.channel.call(
                NOTIFY_INFO,
                "Info",
                notify_info_pb2.NotifyInfoRequest(),
                notify_info_pb2.NotifyInfoResponse,
                SEND_SECONDS,
            )
            client.version = highest_common(answer.supportedNotifyVersions, NOTIFY_VERSIONS)
        except BaseException:
            await client.close()
            raise
        return client

    async def close(self) -> None:
        """Close the connection."""
        await self.channel.close()

    async def domain_event(self, kind: str, domain: bytes = b"", status: bytes = b"") -> None:
        """Tell of a change: ``domain`` is the domain's JSON, or ``status`` a Status's when ``kind`` is
        ERROR.
        """
        request = DomainEventRequest(domainJSON=domain, statusJSON=status, eventType=kind)
        await self._send("HandleDomainEvent", request)

    async def k8s_event(self, event: bytes) -> None:
        """Hand over an event for the API server: JSON of a core/v1 Event."""
        await self._send("HandleK8sEvent", K8sEventRequest(eventJSON=event))

    async def _send(self, rpc: str, request: Message) -> None:
        answer = await self.channel.call(NOTIFY, rpc, request, Response, SEND_SECONDS)
        if not answer.success:
            raise RpcError(rpc, answer.message, response=answer)
