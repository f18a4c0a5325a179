"""Who listens at a socket, and whether it answers."""

from __future__ import annotations

import os
import socket
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from kvnode.agent.errors import AgentError
from kvnode.agent.peers import greets, peer_of
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
        assert peer.root == Path(f"/proc/{os.getpid()}/root")
        assert await greets(path)


@real_time
async def test_one_that_listens_and_says_nothing_does_not_greet(path: Path) -> None:
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind(str(path))
        listening.listen()
        assert not await greets(path, 0.1)
    assert not await greets(path)
    with pytest.raises(AgentError, match="nobody listens: Connection refused"):
        await peer_of(path)


@real_time
async def test_a_path_that_is_too_long_is_refused(path: Path) -> None:
    with pytest.raises(AgentError, match="nobody listens"):
        await peer_of(path / ("x" * 200))
