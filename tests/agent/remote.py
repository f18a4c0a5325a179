"""Launchers that run no guest, each a process with a root of its own, as a pod's would be.

``python -m tests.agent.remote PODS ROOT POD NAMESPACE NAME UID``: takes a JSON list a line, a method of the stand-in
and its arguments, and answers with a line. What the agent calls is told as it comes.
"""

from __future__ import annotations

import asyncio
import json
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from kvnode.rpc.errors import RpcError
from tests.agent.standin import StandIn

MONITOR = ("sh", "-c", 'setpriv --pdeathsig KILL -- "$@"; exit $?', "monitor")
"""A process above a launcher, as its pod has one: below the tests' own process there may be guests of other tests."""
SOCKETS = "volumes/kubernetes.io~empty-dir/sockets"


class Remote:
    """One of them, from the outside. It does not listen before `start`."""

    def __init__(
        self, pods: Path, root: Path, pod_uid: str, vmi: dict[str, Any], inside: Sequence[str] = ()
    ) -> None:
        """``inside`` is a command that runs another's, in the place of the monitor."""
        self._inside = inside or MONITOR
        about = vmi["metadata"]
        self.namespace, self.name, self.uid = about["namespace"], about["name"], about["uid"]
        self.root = root
        self.socket = pods / pod_uid / SOCKETS / "launcher-sock"
        self.calls: list[str] = []
        """What the agent called, in order."""
        self._arguments = [str(pods), str(root), pod_uid, self.namespace, self.name, self.uid]
        self._process: asyncio.subprocess.Process | None = None
        self._reading: asyncio.Task[None] | None = None
        self._answers: asyncio.Queue[Any] = asyncio.Queue()

    @property
    def pid(self) -> int:
        """Of the process above the launcher."""
        assert self._process is not None
        return self._process.pid

    @property
    def launcher(self) -> int:
        """PID of the launcher below its monitor."""
        return int(Path(f"/proc/{self.pid}/task/{self.pid}/children").read_text())

    async def start(self) -> None:
        """Listen."""
        self._answers = asyncio.Queue()
        self._process = await asyncio.create_subprocess_exec(
            *(*self._inside, sys.executable, "-m", "tests.agent.remote", *self._arguments),
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            limit=1 << 24,
        )
        self._reading = asyncio.create_task(self._read())
        assert await self._answers.get() == "ready"

    async def stop(self) -> None:
        """Die, as one that is killed; its socket stays."""
        process, self._process = self._process, None
        if process is None:
            return
        if process.returncode is None:
            process.kill()
        await process.wait()
        if self._reading is not None:
            await self._reading

    async def do(self, method: str, *arguments: Any, **named: Any) -> None:
        """Have it do something; raises RpcError when that fails."""
        assert self._process is not None
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps([method, arguments, named]).encode() + b"\n")
        await self._process.stdin.drain()
        async with asyncio.timeout(120):
            answer = await self._answers.get()
        if answer is not None:
            raise RpcError(method, answer)

    async def become(self, status: str, reason: str = "") -> None:
        """Have the domain come into a state, and tell of it."""
        await self.do("become", status, reason)

    async def _read(self) -> None:
        assert self._process is not None
        assert self._process.stdout is not None
        async for line in self._process.stdout:
            kind, what = json.loads(line)
            if kind == "call":
                self.calls.append(what)
            else:
                self._answers.put_nowait(what)
        self._answers.put_nowait("the launcher has ended")


class _Told(list[str]):
    def append(self, one: str) -> None:
        print(json.dumps(["call", one]), flush=True)


class Inside(StandIn):
    """It, from the inside, with what a hostile one would do."""

    answer = -1
    """Bytes of the domain that it answers with instead of its own."""
    statistics = ""
    """JSON of the statistics that it answers with instead of its own."""
    stalled = ""

    async def stall(self, method: str) -> None:
        """Never answer a method; "" lets all be answered again that are asked from now on."""
        self.stalled = method

    async def _sync(self, request: Any, context: object) -> Any:
        if self.stalled == "SyncVirtualMachine":
            self.calls.append("sync")
            await asyncio.Event().wait()
        return await super()._sync(request, context)

    async def _domain(self, request: object, context: object) -> Any:
        found = await super()._domain(request, context)
        if self.answer >= 0:
            found.domain = "x" * self.answer or "[]"
        return found

    async def _stats(self, request: object, context: object) -> Any:
        found = await super()._stats(request, context)
        found.domainStats = self.statistics or found.domainStats
        return found

    async def say(self, field: str, value: Any) -> None:
        """Set an attribute."""
        setattr(self, field, tuple(value) if isinstance(value, list) else value)

    async def hang(self, on: bool) -> None:
        """Stop answering, or go on."""
        (self.silent.clear if on else self.silent.set)()

    async def flood(self, count: int, at_once: int) -> None:
        """Send so many events of a guest that changes all the time."""
        turns = asyncio.Semaphore(at_once)

        async def one(number: int) -> None:
            async with turns:
                self.state = ("Paused", "User") if number % 2 else ("Running", "Unknown")
                try:
                    await self.tell("MODIFIED")
                except RpcError:
                    return

        await asyncio.gather(*(one(number) for number in range(count)))

    async def send(self, size: int) -> None:
        """Send an event of so many bytes."""
        await self.tell("MODIFIED", "x" * size)


async def _serve() -> None:
    pods, root, pod, namespace, name, uid = sys.argv[1:]
    about = {"metadata": {"namespace": namespace, "name": name, "uid": uid}}
    launcher = Inside(Path(pods), Path(root), pod, about)
    launcher.calls = _Told()
    await launcher.start()
    loop = asyncio.get_running_loop()
    await loop.run_in_executor(None, json.dumps, {})  # in the new root there is nothing to import
    os.chroot(root)
    os.chdir("/")
    launcher.root = Path("/")
    print(json.dumps(["answer", "ready"]), flush=True)
    while line := await loop.run_in_executor(None, sys.stdin.readline):
        method, arguments, named = json.loads(line)
        try:
            await getattr(launcher, method)(*arguments, **named)
        except Exception as error:
            print(json.dumps(["answer", str(error) or repr(error)]), flush=True)
        else:
            print(json.dumps(["answer", None]), flush=True)
    os._exit(0)


if __name__ == "__main__":
    asyncio.run(_serve())
