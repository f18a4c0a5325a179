"""Asking launchers: all of them when the agent starts, and each again and again.

``pkg/virt-handler/cache/domain-watcher.go:83-312``
"""

from __future__ import annotations

import asyncio
import logging
import math
from collections.abc import Awaitable, Callable, Iterable
from datetime import datetime
from pathlib import Path

from kvnode.agent.domain import UNKNOWN
from kvnode.agent.domains import DomainStore
from kvnode.agent.errors import FAILURES, AgentError
from kvnode.agent.ghost import Ghost
from kvnode.agent.ghosts import GhostRecords
from kvnode.agent.launchers import NodeLaunchers, answers
from kvnode.agent.peers import greet
from kvnode.agent.sockets import is_socket, mark_unresponsive
from kvnode.agent.watchdog import PERIOD, Watchdog
from kvnode.kube.objects import timestamp

logger = logging.getLogger(__name__)

RESYNC = 300.0
"""Seconds after which a launcher is asked for its domain, in case news of it were lost."""

CALL = 100.0
"""Seconds after which a launcher is called, not only greeted: one that greets may hang all the same."""

AT_ONCE = 16
"""Launchers that are asked side by side."""


class Rounds:
    """Who has been asked, and what is to be made of the answers."""

    def __init__(
        self,
        launchers: NodeLaunchers,
        ghosts: GhostRecords,
        domains: DomainStore,
        now: Callable[[], datetime],
        clock: Callable[[], float],
    ) -> None:
        """`clock` gives seconds that only grow."""
        self._launchers = launchers
        self._ghosts = ghosts
        self._domains = domains
        self._now = now
        self._clock = clock
        self.watchdog = Watchdog(clock)
        self._asked: dict[str, float] = {}
        self._pinged: dict[str, float] = {}
        self._progress = clock()
        self._unrecorded: dict[str, Ghost] = {}
        """Launchers without a record, by UID, until they have one: it may not be possible to write it now."""

    @property
    def waiting(self) -> list[Ghost]:
        """Launchers that are there and could not be recorded yet."""
        recorded = {ghost.uid for ghost in self._ghosts}
        return [ghost for uid, ghost in self._unrecorded.items() if uid not in recorded]

    async def ask_all(self, ghosts: Iterable[Ghost]) -> None:
        """Ask these launchers for their domains; those that cannot answer now are asked again by `run`."""
        ghosts = list(ghosts)
        recorded = {ghost.uid for ghost in self._ghosts}
        self._unrecorded |= {ghost.uid: ghost for ghost in ghosts if ghost.uid not in recorded}
        turns = asyncio.Semaphore(AT_ONCE)

        async def one(ghost: Ghost) -> None:
            async with turns:
                await self._undisturbed(ghost, self.ask(ghost))

        async with asyncio.TaskGroup() as group:
            for ghost in ghosts:
                group.create_task(one(ghost))

    async def ask(self, ghost: Ghost) -> bool:
        """Ask a launcher for its domain; tell whether it answered. Of one that is gone the domain is lost.

        Not so as long as its QEMU lives, of which then nothing is known.
        """
        self._asked[ghost.uid] = self._clock()
        if not is_socket(Path(ghost.socket)):
            if self._guest_lives_on(ghost):
                self._domains.unreachable(ghost.key, ghost.uid)
            else:
                self._domains.lost(ghost.key, ghost.uid, timestamp(self._now()))
            return False
        try:
            connection = await self._launchers.open(ghost)
            domain = await connection.domain()
            self._pinged[ghost.uid] = self._clock()
            if not self._is_current(ghost):
                return True
            if domain is None:
                self._domains.absent(ghost.key)
            else:
                self._domains.heard("MODIFIED", domain, ghost)
        except FAILURES as error:
            logger.warning("%s: the launcher cannot be asked for its domain: %s", ghost.key, error)
            if self._is_current(ghost):
                self._domains.unreachable(ghost.key, ghost.uid)
            return False
        return True

    @property
    def since(self) -> float:
        """Seconds since a launcher was last looked after, or since there was none to be."""
        return self._clock() - self._progress

    async def run(self) -> None:
        """Look after all launchers until cancelled, some each second, spread over the period."""
        while True:
            waiting = self.waiting
            self._unrecorded = {ghost.uid: ghost for ghost in waiting}
            ghosts = [*self._ghosts, *waiting]
            self._forget_all_but(ghosts)
            size = max(math.ceil(len(ghosts) / PERIOD), 1)
            pause = PERIOD / (len(ghosts) / size + 1)
            # One that hangs makes its turn long, and no other.
            async with asyncio.TaskGroup() as turns:
                for first in range(0, len(ghosts), size):
                    await asyncio.sleep(pause)
                    turns.create_task(self._turn(ghosts[first : first + size]))
                await asyncio.sleep(pause)
            self._progress = self._clock()

    async def _turn(self, ghosts: Iterable[Ghost]) -> None:
        """Look after some, those of them together of whom a greeting is enough."""
        current = [ghost for ghost in ghosts if self._is_current(ghost)]
        greeted: dict[Ghost, Path] = {}
        for ghost in list(current):
            try:
                path = self._greeting(ghost)
            except OSError as error:  # such as a disk that fails: nothing is known of it
                logger.warning("%s: the launcher's socket cannot be looked at: %s", ghost.key, error)
                current.remove(ghost)
                continue
            if path is not None:
                greeted[ghost] = path
        try:
            answers = dict(zip(greeted, await greet(greeted.values()), strict=True))
        except OSError as error:  # such as no more files: that says nothing about them
            logger.warning("launchers cannot be greeted: %s", error.strerror or error)
            answers = {}
            current = [ghost for ghost in current if ghost not in greeted]
        # Side by side: their answers wake this process once, and one that hangs makes none wait.
        await asyncio.gather(
            *(self._undisturbed(ghost, self.look_after(ghost, answers.get(ghost))) for ghost in current)
        )
        self._progress = self._clock()

    @staticmethod
    async def _undisturbed(ghost: Ghost, work: Awaitable[object]) -> None:
        """Do something about one launcher, whose trouble must not be the others'."""
        try:
            await work
        except Exception:  # a launcher may say anything
            logger.exception("%s: the launcher cannot be looked after", ghost.key)

    async def look_after(self, ghost: Ghost, greeted: bool | None = None) -> None:
        """See whether a launcher still answers; one that has not for too long is given up.

        ``greeted``: whether it answered a greeting just now; None when it was not greeted.
        """
        answered = await self._ping(ghost) if greeted is None else greeted
        if not self._is_current(ghost):
            return
        if not answered and self._guest_lives_on(ghost):
            return
        if self.watchdog.heard(ghost.socket, answered):
            logger.warning("%s: the launcher has not answered for too long: it is given up", ghost.key)
            try:
                mark_unresponsive(Path(ghost.socket))
            except AgentError as error:
                logger.warning("%s: %s", ghost.key, error)
            self._unrecorded.pop(ghost.uid, None)
            self._domains.lost(ghost.key, ghost.uid, timestamp(self._now()))
        elif answered and self._is_due(ghost):
            await self.ask(ghost)

    def _greeting(self, ghost: Ghost) -> Path | None:
        """Where to greet a launcher; None for one that is to be called, as each is now and then."""
        if self._clock() - self._pinged.get(ghost.uid, -CALL) >= CALL or not is_socket(Path(ghost.socket)):
            return None
        known = self._launchers.known(ghost.uid)
        return known.socket.path if known is not None else None

    async def _ping(self, ghost: Ghost) -> bool:
        """Whether it answers: a greeting, and a call now and then and until it answers that."""
        if not is_socket(Path(ghost.socket)):
            return False
        if (path := self._greeting(ghost)) is not None:
            return (await greet([path]))[0]
        self._pinged.pop(ghost.uid, None)
        try:
            connection = await self._launchers.open(ghost)
            await connection.rpc.ping()
        except FAILURES as error:
            logger.info("%s: the launcher does not answer: %s", ghost.key, error)
            # A node on which it cannot be recorded or heard, as with a full disk, says nothing about the launcher.
            return isinstance(error, AgentError) and await answers(ghost.socket)
        self._pinged[ghost.uid] = self._clock()
        return True

    def _guest_lives_on(self, ghost: Ghost) -> bool:
        """Whether a launcher's files are gone and its QEMU is not.

        kubelet may have been down when the pod was deleted by force. A launcher that hangs is another matter.
        """
        if is_socket(Path(ghost.socket)):
            return False
        household = self._launchers.household(ghost.uid)
        return household is not None and household.has_qemu()

    def _is_due(self, ghost: Ghost) -> bool:
        known = self._domains.get(ghost.key)
        if known is not None and known.status == UNKNOWN:
            return True
        return self._clock() - self._asked.get(ghost.uid, 0.0) > RESYNC

    def _is_current(self, ghost: Ghost) -> bool:
        known = self._ghosts.last_known_uid(ghost.key)
        return known == ghost.uid or (not known and ghost.uid in self._unrecorded)

    def _forget_all_but(self, ghosts: list[Ghost]) -> None:
        self.watchdog.keep(ghost.socket for ghost in ghosts)
        uids = {ghost.uid for ghost in ghosts}
        self._asked = {uid: when for uid, when in self._asked.items() if uid in uids}
        self._pinged = {uid: when for uid, when in self._pinged.items() if uid in uids}
