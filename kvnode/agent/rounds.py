"""Asking launchers: all of them when the agent starts, and each again and again.

``pkg/virt-handler/cache/domain-watcher.go:83-312``
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Iterable
from datetime import datetime
from pathlib import Path

from kvnode.agent.domain import UNKNOWN
from kvnode.agent.domains import DomainStore
from kvnode.agent.errors import FAILURES, AgentError
from kvnode.agent.ghosts import Ghost, GhostRecords
from kvnode.agent.launchers import NodeLaunchers, answers
from kvnode.agent.peers import greets
from kvnode.agent.sockets import is_socket, mark_unresponsive
from kvnode.agent.watchdog import PERIOD, Watchdog
from kvnode.kube.objects import timestamp

logger = logging.getLogger(__name__)

RESYNC = 300.0
"""Seconds after which a launcher is asked for its domain, in case news of it were lost."""

CALL = 60.0
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
        self._unrecorded: dict[str, Ghost] = {}
        """Launchers without a record, by UID, until they have one: it may not be possible to write it now."""

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
        """Ask a launcher for its domain; tell whether it answered. Of one that is gone the domain is lost."""
        self._asked[ghost.uid] = self._clock()
        if not is_socket(Path(ghost.socket)):
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

    async def run(self) -> None:
        """Look after all launchers until cancelled, spread over the period."""
        while True:
            recorded = list(self._ghosts)
            for ghost in recorded:
                self._unrecorded.pop(ghost.uid, None)
            ghosts = [*recorded, *self._unrecorded.values()]
            self._forget_all_but(ghosts)
            pause = PERIOD / (len(ghosts) + 1)
            for ghost in ghosts:
                await asyncio.sleep(pause)
                if self._is_current(ghost):
                    await self._undisturbed(ghost, self.look_after(ghost))
            await asyncio.sleep(pause)

    @staticmethod
    async def _undisturbed(ghost: Ghost, work: Awaitable[object]) -> None:
        """Do something about one launcher, whose trouble must not be the others'."""
        try:
            await work
        except Exception:  # a launcher may say anything
            logger.exception("%s: the launcher cannot be looked after", ghost.key)

    async def look_after(self, ghost: Ghost) -> None:
        """See whether a launcher still answers; one that has not for too long is given up.

        While a launcher hangs, the others wait for no longer than a call may take.
        """
        answered = await self._ping(ghost)
        if not self._is_current(ghost):
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

    async def _ping(self, ghost: Ghost) -> bool:
        """Whether it answers: a call now and then, and until it does; between them a greeting is enough."""
        if not is_socket(Path(ghost.socket)):
            return False
        since = self._clock() - self._pinged.get(ghost.uid, -CALL)
        known = self._launchers.known(ghost.uid)
        if since < CALL and known is not None:
            return await greets(known.socket.path)
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
