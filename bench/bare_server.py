"""``python -m bench.bare_server SOCKET``: gRPC's own server with a Ping and nothing else, as a yardstick."""

from __future__ import annotations

import asyncio
import sys

import grpc.aio

from kvnode.rpc.cmd_v1_pb2 import EmptyRequest, Response


async def main() -> None:
    """Serve until killed."""

    async def ping(_request: object, _context: object) -> Response:
        return Response(success=True)

    handler = grpc.unary_unary_rpc_method_handler(
        ping, request_deserializer=EmptyRequest.FromString, response_serializer=Response.SerializeToString
    )
    server = grpc.aio.server()
    server.add_generic_rpc_handlers(
        (grpc.method_handlers_generic_handler("kubevirt.cmd.v1.Cmd", {"Ping": handler}),)
    )
    server.add_insecure_port(f"unix:{sys.argv[1]}")
    await server.start()
    await server.wait_for_termination()


if __name__ == "__main__":
    asyncio.run(main())
