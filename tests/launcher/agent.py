"""A node agent for the tests: it hears what a launcher tells, and drives the launcher."""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from google.protobuf.message import Message

from kvnode.rpc.cmd import Answer, CmdClient
from kvnode.rpc.notify import bind_notify
from kvnode.rpc.notify_v1_pb2 import DomainEventRequest, K8sEventRequest
from kvnode.rpc.server import Server

#: Seconds that a launcher may take to answer on a busy machine; a real agent comes again instead.
CONNECT_SECONDS = 30.0
ANSWER_SECONDS = 180.0


class PatientClient(CmdClient):
    """Waits longer than an agent does: on a busy machine libvirt asks a new QEMU what it can do for half a minute, and
    a guest's agent takes its time.
    """

    async def _answer(self, rpc: str, request: Message, answer: type[Answer], timeout: float) -> Answer:
        return await super()._answer(rpc, request, answer, max(timeout, ANSWER_SECONDS))


@dataclass(frozen=True)
class Heard:
    """One message: a domain event's type, or ``EVENT`` for a Kubernetes event, and its JSON."""

    kind: str
    content: dict[str, Any]

    @property
    def state(self) -> tuple[str, str]:
        """A domain's state and reason."""
        status = self.content["Status"]
        return status["Status"], status["Reason"]

    @property
    def gone(self) -> bool:
        """Whether it says that the domain is gone."""
        return "deletionTimestamp" in self.content.get("ObjectMeta", {})


class FakeAgent:
    """Serves ``domain-notify-pipe.sock`` in a shared directory; an async context manager.

    ``obedient`` has it do what the real one does: shut the guest down when the launcher says that the VM is to be
    stopped, and delete the domain once it has ended.
    """

    def __init__(self, share: Path, *, obedient: bool = False) -> None:
        """Prepare to serve in ``share``."""
        self.share = share
        self.heard: list[Heard] = []
        self.refuse = ""
        """Answer with this failure."""

        self.refusals = -1
        """So many times; -1: always."""

        self.refuse_reason = ""
        """Answer Kubernetes events of this reason with a failure."""

        self._obedient = obedient
        self._server: Server | None = None
        self._news = asyncio.Condition()
        self._tasks: set[asyncio.Task[None]] = set()
        self._shutting_down = False
        self.vmi = b""

    # ---- its own server

    async def start(self) -> None:
        """Serve, as after an agent's start."""
        self._server = Server(self.share / "domain-notify-pipe.sock", bind_notify(self))
        await self._server.start()

    async def stop(self) -> None:
        """Serve no more, as after an agent's crash."""
        if self._server is not None:
            await self._server.stop(0)
            self._server = None

    async def __aenter__(self) -> Self:
        await self.start()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for task in self._tasks:
            task.cancel()
        await self.stop()

    async def domain_event(self, request: DomainEventRequest) -> None:
        """Take a domain event."""
        await self._take(Heard(request.eventType, json.loads(request.domainJSON)))

    async def k8s_event(self, request: K8sEventRequest) -> None:
        """Take a Kubernetes event."""
        await self._take(Heard("EVENT", json.loads(request.eventJSON)))

    async def _take(self, heard: Heard) -> None:
        if self.refuse and self.refusals != 0:
            self.refusals -= self.refusals > 0
            raise ValueError(self.refuse)
        if self.refuse_reason and heard.content.get("reason") == self.refuse_reason:
            raise ValueError("not this one")
        async with self._news:
            self.heard.append(heard)
            self._news.notify_all()
        if self._obedient and heard.kind != "EVENT":
            task = asyncio.ensure_future(self._obey(heard))
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)

    async def _obey(self, heard: Heard) -> None:
        grace = heard.content["Spec"]["Metadata"]["KubeVirt"]["GracePeriod"] or {}
        state, reason = heard.state
        with contextlib.suppress(Exception):
            async with self.commands() as client:
                if state == "Crashed" or (
                    state == "Shutoff" and reason != "Unknown"
                ):  # not one to be started yet
                    await client.vmi_command("DeleteVirtualMachine", self.vmi)
                elif grace.get("MarkedForGracefulShutdown") and not self._shutting_down:
                    self._shutting_down = True
                    await client.vmi_command("ShutdownVirtualMachine", self.vmi)

    async def until(self, condition: Callable[[Heard], bool], what: str, seconds: float = 120) -> Heard:
        """Wait for a message, heard already or not; fails the test when it does not come."""
        try:
            async with asyncio.timeout(seconds), self._news:
                while True:
                    for heard in self.heard:
                        if condition(heard):
                            return heard
                    await self._news.wait()
        except TimeoutError:
            states = [one.state for one in self.heard if one.kind != "EVENT"]
            raise AssertionError(f"not heard within {seconds:g} s: {what}; heard {states}") from None

    def forget(self) -> None:
        """Forget what was heard."""
        self.heard.clear()

    # ---- the launcher

    @property
    def socket(self) -> Path:
        """The launcher's socket."""
        return self.share / "sockets/launcher-sock"

    @contextlib.asynccontextmanager
    async def commands(self, *, patient: bool = False) -> Any:
        """A client of the launcher; ``patient``: a :class:`PatientClient`."""
        kind = PatientClient if patient else CmdClient
        client = await kind.open(self.socket, CONNECT_SECONDS)
        try:
            yield client
        finally:
            await client.close()
