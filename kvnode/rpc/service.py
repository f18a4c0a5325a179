"""Services as data: read off the message descriptors, and bound to handlers by a table."""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Any, cast

from google.protobuf.descriptor import FileDescriptor
from google.protobuf.message import Message
from google.protobuf.message_factory import GetMessageClass

from kvnode.rpc.errors import RpcError
from kvnode.rpc.runtime import grpc

logger = logging.getLogger(__name__)

#: Bytes of the message of a call that fails: each may become three, of the 8 KiB that clients take.
_LONGEST_MESSAGE = 2000

#: ``await handler(request, context)`` gives the answer.
UnaryHandler = Callable[[Any, "grpc.aio.ServicerContext[Any, Any]"], Awaitable[Any]]
#: ``async for part in handler(request, context)`` gives the parts of a streamed answer.
StreamHandler = Callable[[Any, "grpc.aio.ServicerContext[Any, Any]"], AsyncIterator[Any]]
Handler = UnaryHandler | StreamHandler


@dataclass(frozen=True)
class Method:
    """One method of a service."""

    name: str
    path: str
    """``/package.Service/Method``."""

    request: type[Message]
    response: type[Message]
    streams: bool
    """The answer is a stream. (No service here streams requests.)"""


@dataclass(frozen=True)
class Service:
    """A service: its full name, and its methods by name."""

    name: str
    methods: Mapping[str, Method]

    @classmethod
    def of(cls, file: FileDescriptor, name: str) -> Service:
        """The service ``name`` of a generated module's ``DESCRIPTOR``; raises KeyError when it has none."""
        descriptor = file.services_by_name[name]
        methods = {
            method.name: Method(
                name=method.name,
                path=f"/{descriptor.full_name}/{method.name}",
                request=GetMessageClass(method.input_type),
                response=GetMessageClass(method.output_type),
                streams=method.server_streaming,
            )
            for method in descriptor.methods
        }
        return cls(descriptor.full_name, methods)

    def bind(self, handlers: Mapping[str, Handler]) -> grpc.GenericRpcHandler:
        """Return what a server registers to serve this with ``handlers``, by method name.

        A method without a handler is answered UNIMPLEMENTED. Raises ValueError for a handler of no method.
        """
        unknown = sorted(set(handlers) - set(self.methods))
        if unknown:
            raise ValueError(f"{self.name} has no method {', '.join(unknown)}")
        return grpc.method_handlers_generic_handler(
            self.name, {name: _bind(self.methods[name], handler) for name, handler in handlers.items()}
        )


def _bind(method: Method, handler: Handler) -> grpc.RpcMethodHandler[Any, Any]:
    if method.streams:
        return grpc.unary_stream_rpc_method_handler(
            cast(StreamHandler, handler),
            request_deserializer=method.request.FromString,
            response_serializer=method.response.SerializeToString,
        )
    return grpc.unary_unary_rpc_method_handler(
        _guarded(method, cast(UnaryHandler, handler)),
        request_deserializer=method.request.FromString,
        response_serializer=method.response.SerializeToString,
    )


def _guarded(method: Method, handler: UnaryHandler) -> UnaryHandler:
    """Wrap a handler so that whatever it raises ends that one call: a line for the caller, the rest for the
    log.
    """

    async def call(request: Message, context: grpc.aio.ServicerContext[Any, Any]) -> Message:
        try:
            result = _checked(method, await handler(request, context))
        except RpcError as error:
            await context.abort(grpc.StatusCode[error.code or "UNKNOWN"], _sendable(error.message))
        except grpc.aio.AbortError:
            raise
        except Exception as error:
            logger.exception("%s failed", method.name)
            text = f"{method.name}: {type(error).__name__}: {error}"
            await context.abort(grpc.StatusCode.INTERNAL, _sendable(text))
        return result

    return call


def _sendable(text: str) -> str:
    """What goes into a header of HTTP: UTF-8, and short, as clients refuse answers whose headers are long."""
    return text.encode("utf-8", "replace")[:_LONGEST_MESSAGE].decode("utf-8", "ignore")


def _checked(method: Method, answer: object) -> Message:
    if not isinstance(answer, method.response):
        raise TypeError(f"the handler gave {type(answer).__name__}, not {method.response.__name__}")
    return answer
