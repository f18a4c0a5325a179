"""``rpcs``: what the servers register, asked of the handlers that gRPC is given."""

from __future__ import annotations

from functools import cache
from typing import Any, NamedTuple

from google.protobuf.message import Message

from kvnode.rpc.cmd import CMD, CMD_INFO, bind_cmd
from kvnode.rpc.notify import NOTIFY, NOTIFY_INFO, bind_notify
from tests.reference.common import Case, Outcome


class _Call(NamedTuple):
    """What gRPC hands to a generic handler to find a method."""

    method: str
    invocation_metadata: tuple[()] = ()


class _Nobody:
    async def domain_event(self, request: Message) -> None: ...

    async def k8s_event(self, request: Message) -> None: ...


def run(case: Case) -> Outcome:
    """Look the row's path up among what is registered."""
    want = dict(case.data)
    return Outcome.of(want, _registered().get(want["path"]))


@cache
def _registered() -> dict[str, dict[str, Any]]:
    async def nothing(_request: object, _context: object) -> None: ...

    handlers = (*bind_cmd(dict.fromkeys(CMD.methods, nothing)), *bind_notify(_Nobody()))
    rows = {}
    for service in (CMD, CMD_INFO, NOTIFY, NOTIFY_INFO):
        for method in service.methods.values():
            found = [h for handler in handlers if (h := handler.service(_Call(method.path)))]
            if len(found) != 1:
                continue
            rows[method.path] = {
                "service": service.name,
                "method": method.name,
                "path": method.path,
                "request": _message_of(found[0].request_deserializer),
                "response": method.response.DESCRIPTOR.full_name,
                "client_streaming": found[0].request_streaming,
                "server_streaming": found[0].response_streaming,
            }
    return rows


def _message_of(deserializer: Any) -> str:
    """The message that a handler reads: what it makes of no bytes at all."""
    name: str = deserializer(b"").DESCRIPTOR.full_name
    return name
