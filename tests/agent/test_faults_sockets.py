"""What keeps launchers that vanish, hang or lie from hurting others: sockets that are held, and limits."""

from __future__ import annotations

import asyncio
import os
import socket
import subprocess
import sys
from pathlib import Path
from typing import Any
from unittest.mock import MagicMock

import pytest

from kvnode.agent.domains import DomainStore
from kvnode.agent.errors import AgentError
from kvnode.agent.ghost import Ghost
from kvnode.agent.peers import peer_of
from kvnode.agent.pipes import LARGEST, Listener, Pipe
from kvnode.agent.sockets import Pinned, mark_unresponsive
from kvnode.rpc.cmd import CmdClient, bind_cmd
from kvnode.rpc.cmd_v1_pb2 import Response
from kvnode.rpc.errors import RpcError
from kvnode.rpc.notify import NotifyClient
from kvnode.rpc.runtime import grpc
from kvnode.rpc.server import Server
from kvnode.virt.domain_json import encode_domain, make_metadata, new_domain
from tests.agent.lab import until
from tests.agent.node import eventually
from tests.kube.loops import real_time

needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="gives sockets away")


def test_a_pinned_socket_is_that_very_one(short: Path) -> None:
    path = short / "s"
    with socket.socket(socket.AF_UNIX) as first, socket.socket(socket.AF_UNIX) as second:
        first.bind(str(path))
        first.listen()
        with Pinned(path) as held:
            assert not held.was_replaced()
            path.unlink()
            assert not held.was_replaced(), "gone, but nothing else is there"
            path.symlink_to("/dev/null")
            assert not held.was_replaced()
            path.unlink()
            second.bind(str(path))
            second.listen()
            assert held.was_replaced()
            with socket.socket(socket.AF_UNIX) as client:
                client.connect(str(held.path))
                first.settimeout(5)
                first.accept()[0].close()


@pytest.mark.parametrize("what", ["link", "fifo", "file", "nothing"])
def test_nothing_but_a_socket_is_pinned(short: Path, what: str) -> None:
    path = short / "s"
    with socket.socket(socket.AF_UNIX) as other:
        other.bind(str(short / "other"))
        if what == "link":
            path.symlink_to(short / "other")
        elif what == "fifo":
            os.mkfifo(path)
        elif what == "file":
            path.touch()
        before = len(list(Path("/proc/self/fd").iterdir()))
        with pytest.raises(AgentError, match=f"{path}: (is no socket|No such file)"):
            Pinned(path)
        assert len(list(Path("/proc/self/fd").iterdir())) == before


@pytest.mark.parametrize("there", [False, True])
def test_a_mark_that_is_a_link_is_not_followed(short: Path, there: bool) -> None:
    outside = short / "outside"
    if there:
        outside.write_text("")
        os.utime(outside, (1, 1))
    (short / "launcher-unresponsive").symlink_to(outside)
    mark_unresponsive(short / "launcher-sock")
    assert outside.exists() is there
    assert not there or outside.stat().st_mtime == 1


@real_time
async def test_a_listener_whose_first_process_has_ended_is_nobody(short: Path) -> None:
    """Its PID may become another's, whose root and network would be taken for the launcher's."""
    path = short / "s"
    program = "import socket, sys; socket.socket(fileno=int(sys.argv[1])).listen()"
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind(str(path))
        number = listening.fileno()
        with subprocess.Popen([sys.executable, "-c", program, str(number)], pass_fds=(number,)) as child:
            pass
        with pytest.raises(AgentError, match=f"PID {child.pid}\\) has ended"):
            await peer_of(path)


@needs_root
@real_time
async def test_a_link_in_the_place_of_a_new_socket_gives_nothing_away(
    short: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whoever owns the folder is quicker: what the link leads to keeps its owner and mode."""
    victim = short / "victim"
    with socket.socket(socket.AF_UNIX) as another:
        another.bind(str(victim))
    victim.chmod(0o600)
    folder = short / "f"
    folder.mkdir()
    server = Server(folder / "s", ())

    def bind_and_swap(made: Any, target: str) -> int:
        port = int(real(made, target))
        path = Path(target.removeprefix("unix:"))
        path.unlink()
        path.symlink_to(victim)
        return port

    kind = type(grpc.aio.server())
    real = kind.add_insecure_port
    monkeypatch.setattr(kind, "add_insecure_port", bind_and_swap)
    with pytest.raises(OSError, match=r"Socket operation on non-socket"):
        await server.start((107, 107), 0o666)
    assert (victim.stat().st_uid, victim.stat().st_mode & 0o777) == (0, 0o600)
    assert not list(folder.iterdir())


@real_time
async def test_more_calls_at_once_than_are_heard_are_refused(short: Path) -> None:
    free = asyncio.Event()

    async def ping(_request: object, _context: object) -> Response:
        await free.wait()
        return Response(success=True)

    server = Server(short / "s", bind_cmd({"Ping": ping}), 2)
    await server.start()
    client = await CmdClient.open(short / "s")
    try:
        calls = [asyncio.ensure_future(client.ping()) for _ in range(10)]
        await until(lambda: sum(call.done() for call in calls) >= 8)
        free.set()
        ended = await asyncio.gather(*calls, return_exceptions=True)
        refused = [one for one in ended if isinstance(one, RpcError)]
        assert {one.code for one in refused} == {"RESOURCE_EXHAUSTED"}
        assert len(refused) == 8

        async def heard() -> bool:
            try:
                await client.ping()
            except RpcError:  # one that was answered may count for a moment longer
                return False
            return True

        await eventually(heard)
    finally:
        await client.close()
        await server.stop(0)


@real_time
async def test_a_message_that_is_too_large_is_not_read(short: Path) -> None:
    """The agent's memory is not a launcher's to fill."""
    (short / "var/run/kubevirt").mkdir(parents=True)
    ghost = Ghost("default", "testvmi", "uid-1", str(short / "s"))
    domains = DomainStore(MagicMock())
    pipe = Pipe(Listener(ghost, domains, MagicMock(), MagicMock()))
    await pipe.start(short, (os.geteuid(), os.getegid()))
    client = await NotifyClient.open(short / "var/run/kubevirt/domain-notify-pipe.sock")
    domain = encode_domain(new_domain("default", "testvmi", metadata=make_metadata(UID="uid-1"))).encode()
    try:
        with pytest.raises(RpcError) as caught:
            await client.domain_event("MODIFIED", domain + b" " * LARGEST)
        assert caught.value.code == "RESOURCE_EXHAUSTED"
        assert domains.get("default/testvmi") is None
        await client.domain_event("MODIFIED", domain + b" " * (LARGEST - len(domain) - 100))
        assert domains.get("default/testvmi") is not None
    finally:
        await client.close()
        await pipe.stop()
