"""Who listens at a socket, and whether it answers."""

from __future__ import annotations

import asyncio
import os
import socket
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from kvnode.agent.errors import AgentError
from kvnode.agent.peers import greet, peer_of
from kvnode.rpc.cmd import bind_cmd
from tests.kube.loops import real_time
from tests.rpc.helpers import serving


@pytest.fixture
def path() -> Iterator[Path]:
    with tempfile.TemporaryDirectory(prefix="kv") as folder:
        yield Path(folder) / "s"


@real_time
async def test_a_server_is_known_and_greets(path: Path) -> None:
    async with serving(path, *bind_cmd({})):
        peer = await peer_of(path)
        assert (peer.pid, peer.uid, peer.gid) == (os.getpid(), os.geteuid(), os.getegid())
        assert peer.root.samefile("/")
        assert (peer.proc / "stat").read_text().startswith(f"{os.getpid()} ")
        assert await greet([path]) == [True]


@real_time
async def test_one_that_listens_and_says_nothing_does_not_greet(path: Path) -> None:
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind(str(path))
        listening.listen()
        assert await greet([path], 0.1) == [False]
    assert await greet([path]) == [False]
    with pytest.raises(AgentError, match="nobody listens: Connection refused"):
        await peer_of(path)


@real_time
async def test_one_that_hangs_does_not_make_others_seem_to(path: Path) -> None:
    other = path.with_name("other")
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind(str(other))
        listening.listen()
        async with serving(path, *bind_cmd({})):
            assert await greet([other, path, path.with_name("none")], 5.0) == [False, True, False]


@real_time
async def test_one_that_takes_its_time_greets_too(path: Path) -> None:
    async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readexactly(24)
        await asyncio.sleep(0.2)
        writer.write(bytes([0, 0, 0, 4, 0, 0, 0, 0, 0]))
        await writer.drain()
        writer.close()

    async with await asyncio.start_unix_server(talk, path):
        assert await greet([path], 10.0) == [True]


@real_time
async def test_one_that_answers_with_something_else_does_not_greet(path: Path) -> None:
    async def talk(_reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.1 400 no\r\n\r\n")
        await writer.drain()
        writer.close()

    async with await asyncio.start_unix_server(talk, path):
        assert await greet([path]) == [False]


@real_time
async def test_a_path_that_is_too_long_is_refused(path: Path) -> None:
    with pytest.raises(AgentError, match="nobody listens"):
        await peer_of(path / ("x" * 200))
