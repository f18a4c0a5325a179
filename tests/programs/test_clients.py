"""virt-probe and virt-freezer against a launcher's server that answers what it is told to."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from kvnode.rpc import cmd_v1_pb2 as pb
from kvnode.rpc.cmd import bind_cmd
from kvnode.rpc.errors import RpcError
from kvnode.rpc.server import Server


class Launcher:
    """A launcher of which only the answers matter."""

    def __init__(self) -> None:
        self.calls: list[tuple[str, Any]] = []
        self.exec = pb.ExecResponse(response=pb.Response(success=True), exitCode=0, stdOut="")
        self.exec_error = ""
        self.version = "7.2"
        self.state = "Running"
        self.freeze = pb.Response(success=True)
        self.thaw = pb.Response(success=True)

    def handlers(self) -> dict[str, Any]:
        """Its handlers."""
        return {
            "Exec": self.answer_exec,
            "GuestPing": self.answer_ping,
            "GetGuestInfo": self.answer_info,
            "GetDomain": self.answer_domain,
            "FreezeVirtualMachine": self.answer_freeze,
            "UnfreezeVirtualMachine": self.answer_thaw,
        }

    async def answer_exec(self, request: Any, _context: object) -> Any:
        self.calls.append(
            ("exec", (request.domainName, request.Command, list(request.Args), request.timeoutSeconds))
        )
        if self.exec_error:
            raise RpcError("Exec", self.exec_error, "UNKNOWN")
        return self.exec

    async def answer_ping(self, request: Any, _context: object) -> Any:
        self.calls.append(("ping", (request.domainName, request.timeoutSeconds)))
        if self.exec_error:
            raise RpcError("GuestPing", self.exec_error, "UNKNOWN")
        return pb.GuestPingResponse(response=pb.Response(success=True))

    async def answer_info(self, _request: Any, _context: object) -> Any:
        info = json.dumps({"guestAgentVersion": self.version, "os": {"name": "Windows"}})
        return pb.GuestInfoResponse(response=pb.Response(success=True), guestInfoResponse=info)

    async def answer_domain(self, _request: Any, _context: object) -> Any:
        domain = json.dumps({"Status": {"Status": self.state}})
        return pb.DomainResponse(response=pb.Response(success=True), domain=domain)

    async def answer_freeze(self, request: Any, _context: object) -> Any:
        self.calls.append(("freeze", (json.loads(request.vmi.vmiJson), request.unfreezeTimeoutSeconds)))
        return self.freeze

    async def answer_thaw(self, request: Any, _context: object) -> Any:
        self.calls.append(("thaw", json.loads(request.vmi.vmiJson)))
        return self.thaw


@pytest.fixture
def launcher() -> Iterator[tuple[Launcher, Path]]:
    """A launcher that serves in a thread, and its socket."""
    import asyncio  # noqa: PLC0415

    directory = Path(tempfile.mkdtemp(prefix="kvn-"))
    made, socket = Launcher(), directory / "launcher-sock"
    loop, ready = asyncio.new_event_loop(), threading.Event()
    server = Server(socket, bind_cmd(made.handlers()))

    async def serve() -> None:
        await server.start()
        ready.set()

    def run() -> None:
        loop.create_task(serve())
        loop.run_forever()

    thread = threading.Thread(target=run)
    thread.start()
    assert ready.wait(60)
    yield made, socket
    asyncio.run_coroutine_threadsafe(server.stop(0), loop).result(60)
    loop.call_soon_threadsafe(loop.stop)
    thread.join()
    loop.close()
    shutil.rmtree(directory)


def call(program: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run a program as its entry point does."""
    script = f"import sys; from kvnode.launcher.programs.{program} import main; sys.exit(main())"
    return subprocess.run(
        [sys.executable, "-c", script, *arguments], capture_output=True, text=True, check=False, timeout=60
    )


class TestProbe:
    def test_a_command_in_the_guest(self, launcher: tuple[Launcher, Path]) -> None:
        made, socket = launcher
        made.exec = pb.ExecResponse(response=pb.Response(success=True), exitCode=3, stdOut="said")
        done = call(
            "probe", "--socket", str(socket), "--domainName", "ns_vm", "--timeoutSeconds", "2",
            "--command", "cat", "--", "-n", "/etc/motd",
        )  # fmt: skip
        assert (done.returncode, done.stdout) == (3, "said\n")
        assert made.calls == [("exec", ("ns_vm", "cat", ["-n", "/etc/motd"], 2))]

    def test_a_ping_of_the_agent(self, launcher: tuple[Launcher, Path]) -> None:
        made, socket = launcher
        done = call("probe", f"--socket={socket}", "--domainName=ns_vm", "--guestAgentPing")
        assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
        assert made.calls == [("ping", ("ns_vm", 1))]

    @pytest.mark.parametrize("flags", [["--guestAgentPing"], ["--command", "true"]])
    def test_a_guest_that_does_not_answer(self, launcher: tuple[Launcher, Path], flags: list[str]) -> None:
        made, socket = launcher
        made.exec_error = "the guest agent is away"
        done = call("probe", f"--socket={socket}", "--domainName=ns_vm", *flags)
        assert done.returncode == 1
        assert "the guest agent is away" in done.stderr
        assert done.stderr.count("\n") == 1

    def test_no_launcher_is_one_line(self, tmp_path: Path) -> None:
        done = call("probe", f"--socket={tmp_path}/none", "--guestAgentPing")
        assert done.returncode == 1
        assert done.stderr.startswith("virt-probe: ")
        assert done.stderr.count("\n") == 1


class TestFreezer:
    VMI = {"metadata": {"name": "vm", "namespace": "ns"}}  # noqa: RUF012

    def freezer(self, socket: Path, *flags: str) -> subprocess.CompletedProcess[str]:
        return call("freezer", f"--socket={socket}", "--name=vm", "--namespace=ns", *flags)

    def test_freeze_and_thaw(self, launcher: tuple[Launcher, Path]) -> None:
        made, socket = launcher
        assert self.freezer(socket, "--freeze").returncode == 0
        assert self.freezer(socket, "--freeze", "--unfreezeTimeoutSeconds", "60").returncode == 0
        assert self.freezer(socket, "--unfreeze").returncode == 0
        assert made.calls == [("freeze", (self.VMI, 300)), ("freeze", (self.VMI, 60)), ("thaw", self.VMI)]

    @pytest.mark.parametrize(("version", "state"), [("", "Running"), ("7.2", "Paused")])
    def test_no_agent_or_no_running_guest_needs_nothing(
        self, launcher: tuple[Launcher, Path], version: str, state: str
    ) -> None:
        made, socket = launcher
        made.version, made.state = version, state
        done = self.freezer(socket, "--freeze")
        assert done.returncode == 0
        assert "nothing to do" in done.stderr
        assert made.calls == []

    def test_an_agent_that_goes_away_midway_is_thawed(self, launcher: tuple[Launcher, Path]) -> None:
        made, socket = launcher
        made.freeze = pb.Response(success=False, message="Guest agent not available for now")
        done = self.freezer(socket, "--freeze")
        assert done.returncode == 1
        assert "VSS" in done.stderr
        assert [name for name, _ in made.calls] == ["freeze", "thaw"]

    def test_a_failure_to_thaw(self, launcher: tuple[Launcher, Path]) -> None:
        made, socket = launcher
        made.thaw = pb.Response(success=False, message="fsfreeze is limited up to 10 seconds")
        done = self.freezer(socket, "--unfreeze")
        assert done.returncode == 1
        assert "back it up" in done.stderr

    @pytest.mark.parametrize(
        "flags",
        [["--name=a", "--namespace=b"], ["--freeze", "--name=a"], ["--freeze", "--unfreeze"], ["--x"]],
    )
    def test_bad_command_lines(self, flags: list[str]) -> None:
        done = call("freezer", *flags)
        assert done.returncode == 1
        assert done.stderr.startswith("virt-freezer: ")
        assert done.stderr.count("\n") == 1
