"""What the launcher tells its node agent: domain events and Kubernetes events, in order, over the agent's pipe.

Nothing here blocks whoever has news: they are queued, and one task sends them. While the agent is away (it is being
updated, or has crashed), it is tried once a second for as long as it takes, unlike in
``pkg/virt-launcher/notify-client/client.go``, which gives up an event after 20 seconds; of the domain events that
pile up meanwhile the newest is what counts, since each holds the whole domain, so that the others are dropped.

An agent that answers, but with a failure, is told again as well: of the domain until it takes the newest state, of a
Kubernetes event some times. What it refuses does not keep the rest of the messages from it.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections import deque
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from kvnode.launcher.log import logger
from kvnode.launcher.pod.settings import Subject
from kvnode.rpc.errors import RpcError, VersionError
from kvnode.rpc.notify import ADDED, MODIFIED, NotifyClient
from kvnode.virt.domain_json.gojson import encode
from kvnode.virt.payloads.kubernetes import EVENT, OBJECT_REFERENCE

#: The agent's socket, in the directory that it shares with launchers.
PIPE = "domain-notify-pipe.sock"
#: Seconds that the agent may take to answer on its socket.
CONNECT_SECONDS = 5.0
#: Seconds before the agent is tried again.
RETRY_SECONDS = 1.0
#: Domain events that may wait, and Kubernetes events: of those beyond, the oldest are dropped.
MOST_WAITING, MOST_EVENTS = 10, 100

#: Times that a Kubernetes event is sent to an agent that answers with a failure.
MOST_REFUSALS = 10
WARNING, NORMAL = "Warning", "Normal"


@dataclass
class _Letter:
    """One message on its way; ``kind`` is the event's type, or "" for a Kubernetes event."""

    kind: str
    content: bytes
    final: bool = False
    refusals: int = 0


class Notifier:
    """Sends to one agent. Made, used and closed in the event loop."""

    def __init__(self, pipe: Path, subject: Subject) -> None:
        """Prepare to send to the agent on ``pipe``; it need not be there yet."""
        self.final_told = asyncio.Event()
        """Set when the agent has heard that the domain is gone."""

        self._pipe = pipe
        self._subject = subject
        self._letters: deque[_Letter] = deque()
        self._some = asyncio.Event()
        self._away = False
        self._client: NotifyClient | None = None
        self._under_way: _Letter | None = None
        self._task: asyncio.Task[None] | None = None

    def start(self) -> None:
        """Start sending."""
        self._task = asyncio.get_running_loop().create_task(self._run(), name="notify")

    async def stop(self) -> None:
        """Stop sending, whatever still waits."""
        if self._task is not None:
            self._task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self._task
        await self._hang_up()

    # ---- what is told

    def domain_event(self, kind: str, domain: str, *, final: bool = False) -> None:
        """Tell of a change: ``domain`` is the domain's JSON; ``final`` says that it is gone."""
        letter = _Letter(kind, domain.encode(), final)
        if not final:
            self.final_told.clear()  # there is a domain again
        last = self._letters[-1] if self._letters else None
        crowded = self._away or len(self._letters) >= MOST_WAITING
        if crowded and last is not None and last.kind and last is not self._under_way:
            self._letters[-1] = _in_place_of(last, letter)
        else:
            self._letters.append(letter)
        self._some.set()

    def k8s_event(self, kind: str, reason: str, message: str) -> None:
        """Have an event about the VMI recorded at the API server; ``kind`` is Normal or Warning."""
        event = EVENT.make(involvedObject=self._reference(), type=kind, reason=reason, message=message)
        waiting = [letter for letter in self._letters if not letter.kind and letter is not self._under_way]
        if len(waiting) >= MOST_EVENTS:
            self._letters.remove(waiting[0])
            logger.warning("the agent is away, and more than %d events wait: one is dropped", MOST_EVENTS)
        self._letters.append(_Letter("", encode(EVENT, event).encode()))
        self._some.set()

    def _reference(self) -> dict[str, Any]:
        return OBJECT_REFERENCE.make(
            kind="VirtualMachineInstance",
            namespace=self._subject.namespace,
            name=self._subject.name,
            uid=self._subject.uid,
            apiVersion="kubevirt.io/v1",
        )

    # ---- how it is sent

    async def _run(self) -> None:
        while True:
            await self._some.wait()
            if not self._letters:
                self._some.clear()
                continue
            self._under_way = letter = self._letters[0]
            refused = letter.refusals
            try:
                sent = await self._send(letter)
            finally:
                self._under_way = None
            if letter.refusals > refused:
                self._put_off(letter)
            if not sent:
                await asyncio.sleep(RETRY_SECONDS)
                continue
            self._letters.popleft()
            if letter.final:
                self.final_told.set()

    def _put_off(self, letter: _Letter) -> None:
        """See to the first letter, which the agent refused: others come first, and a newer state replaces it."""
        self._letters.popleft()
        if not letter.kind:
            if letter.refusals < MOST_REFUSALS:
                self._letters.append(letter)
            else:
                logger.warning(
                    "the agent does not take an event after %d times: it is dropped", letter.refusals
                )
            return
        for place, other in enumerate(self._letters):
            if other.kind:
                self._letters[place] = _in_place_of(letter, other)
                return
        self._letters.append(letter)

    async def _send(self, letter: _Letter) -> bool:
        """Send once; False when it is to be sent again."""
        try:
            if self._client is None:
                self._client = await NotifyClient.open(self._pipe, CONNECT_SECONDS)
                logger.info("connected to the agent on %s", self._pipe)
            if letter.kind:
                await self._client.domain_event(letter.kind, letter.content)
            else:
                await self._client.k8s_event(letter.content)
        except RpcError as error:
            if not (error.disconnected or error.code == "DEADLINE_EXCEEDED"):
                if not letter.refusals:
                    logger.warning("the agent does not take a message (%s); telling it again", error)
                letter.refusals += 1
                self._away = False
                return False
            await self._lost(str(error))
        except (VersionError, ValueError) as error:
            await self._lost(str(error))
        else:
            return self._is_back()
        return False

    def _is_back(self) -> bool:
        self._away = False
        return True

    async def _lost(self, why: str) -> None:
        if not self._away:
            logger.warning("the agent cannot be told (%s); trying again until it can", why)
        self._away = True
        await self._hang_up()

    async def _hang_up(self) -> None:
        client, self._client = self._client, None
        if client is not None:
            await client.close()


def _in_place_of(old: _Letter, new: _Letter) -> _Letter:
    """The newer of two states, which the older need not be sent before."""
    if old.kind == ADDED and not new.final:
        new.kind = ADDED  # still the first that the agent hears of it
    new.refusals = old.refusals
    return new


__all__ = ["ADDED", "MODIFIED", "NORMAL", "PIPE", "WARNING", "Notifier"]
