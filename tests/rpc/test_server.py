"""A server's socket, and what garbage does to it."""

from __future__ import annotations

import asyncio
import stat

import grpc.aio
import pytest

from kvnode.rpc.client import target_of
from kvnode.rpc.cmd import CMD, CmdClient, bind_cmd
from kvnode.rpc.cmd_v1_pb2 import EmptyRequest, Response
from kvnode.rpc.errors import RpcError
from kvnode.rpc.server import Server
from tests.rpc.helpers import run, serving


async def pong(request, context):
    return Response(success=True)


PING = bind_cmd({"Ping": pong})


async def ping(socket):
    client = await CmdClient.open(socket)
    try:
        await client.ping()
    finally:
        await client.close()


def test_the_socket_is_for_owner_and_group_and_goes_with_the_server(tmp_path):
    socket = tmp_path / "sockets" / "launcher-init-sock"

    async def body():
        async with serving(socket, *PING):
            mode = socket.stat().st_mode
            await ping(socket)
            return mode

    mode = run(body())
    assert stat.S_ISSOCK(mode)
    assert stat.S_IMODE(mode) == 0o660
    assert list(socket.parent.iterdir()) == []


def test_a_stale_socket_is_replaced(tmp_path):
    socket = tmp_path / "s"
    socket.write_bytes(b"")

    async def body():
        async with serving(socket, *PING):
            await ping(socket)

    run(body())


def test_a_socket_that_moves_keeps_its_connections(tmp_path):
    first, second = tmp_path / "launcher-init-sock", tmp_path / "launcher-sock"

    async def body():
        async with serving(first, *PING) as server:
            client = await CmdClient.open(first)
            server.move(second)
            await client.ping()
            await client.close()
            await ping(second)
            with pytest.raises(RpcError):
                await CmdClient.open(first, timeout=0.1)

    run(body())
    assert list(tmp_path.iterdir()) == []


def test_a_path_that_the_kernel_does_not_take(tmp_path):
    with pytest.raises(ValueError, match="at most 107 bytes"):
        target_of(tmp_path / ("x" * 120))


def test_a_directory_that_cannot_be_made(tmp_path):
    (tmp_path / "file").write_bytes(b"")
    with pytest.raises(OSError, match="file"):
        run(Server(tmp_path / "file" / "s", PING).start())


@pytest.mark.parametrize("garbage", [b"\xff", b"\x0a\x05", b"\x12\x01\xff" * 100])
def test_a_request_that_is_no_message_fails_and_leaves_the_server_well(tmp_path, garbage):
    socket = tmp_path / "s"

    async def body():
        async with serving(socket, *bind_cmd({"Ping": pong, "SyncVirtualMachine": pong})):
            async with grpc.aio.insecure_channel(target_of(socket)) as channel:
                with pytest.raises(grpc.aio.AioRpcError):
                    await channel.unary_unary("/kubevirt.cmd.v1.Cmd/SyncVirtualMachine")(garbage)
            await ping(socket)

    run(body())


def test_bytes_that_are_no_http_leave_the_server_well(tmp_path):
    socket = tmp_path / "s"

    async def body():
        async with serving(socket, *PING):
            reader, writer = await asyncio.open_unix_connection(str(socket))
            writer.write(b"GET / HTTP/1.0\r\n\r\n" * 50)
            await reader.read(100)
            writer.close()
            await ping(socket)

    run(body())


def test_a_thousand_pings(tmp_path):
    socket = tmp_path / "s"

    async def body():
        async with serving(socket, *PING):
            client = await CmdClient.open(socket)
            for _ in range(20):
                await asyncio.gather(*(client.ping() for _ in range(50)))
            await client.close()

    run(body())


def test_thousands_of_pings_at_once_are_each_answered(tmp_path):
    socket = tmp_path / "s"

    async def body():
        async with serving(socket, *PING):
            client = await CmdClient.open(socket)
            calls = (client.channel.call(CMD, "Ping", EmptyRequest(), Response, 120) for _ in range(5000))
            answers = await asyncio.gather(*calls)
            assert all(answer.success for answer in answers)
            await client.close()

    run(body())
