"""What the concerns of a manager share: the connection, threads for libvirt's blocking calls, and the turn."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable, Coroutine
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeVar

import libvirt

from kvnode.launcher.log import logger
from kvnode.launcher.manager.errors import ManagerError, NoDomainError, is_not_found
from kvnode.launcher.manager.instance import Instance
from kvnode.launcher.manager.metadata import MetadataCache
from kvnode.launcher.manager.options import ManagerOptions
from kvnode.virt.connection import Connection

Result = TypeVar("Result")

#: Seconds that libvirt may take for one call before the agent is told that it does not answer.
CALL_SECONDS = 60.0
#: Requests that may wait for their turn to change the domain.
MOST_WAITING = 16


class Host:
    """Shared by the concerns; used in one event loop."""

    def __init__(self, connection: Connection, options: ManagerOptions, metadata: MetadataCache) -> None:
        """``connection`` need not be open yet."""
        self.connection = connection
        self.options = options
        self.metadata = metadata
        self.paused: set[str] = set()
        """UIDs of VMIs whose guest is paused because somebody wants it so."""

        self.has_run: Callable[[], bool] = lambda: True
        """Whether the guest has been seen to run."""

        self.call_seconds = CALL_SECONDS
        self._threads = ThreadPoolExecutor(4, "libvirt-call")
        # A guest whose agent hangs must not keep libvirt's other calls waiting.
        self._agent_threads = ThreadPoolExecutor(2, "agent-call")
        self._turn = asyncio.Lock()
        self._tasks: set[asyncio.Task[Any]] = set()
        self._waiting = 0
        self._stuck: asyncio.Future[Any] | None = None

    # ---- libvirt's calls

    async def call(self, function: Callable[..., Result], *args: Any) -> Result:
        """Run a function that calls libvirt in a thread.

        Raises:
            ManagerError: it did not come back in time. It goes on, and until it is back nothing that
            changes the domain is begun.
        """
        return await self._in_thread(self._threads, function, *args)

    async def work(self, function: Callable[..., Result], *args: Any) -> Result:
        """Run a function that does more than call libvirt, such as making disks, in a thread: it takes its
        time.
        """
        return await asyncio.get_running_loop().run_in_executor(self._threads, function, *args)

    async def ask_agent(self, function: Callable[..., Result], *args: Any) -> Result:
        """Run a function that waits for the guest agent in a thread of its own kind."""
        loop = asyncio.get_running_loop()
        return await loop.run_in_executor(self._agent_threads, function, *args)

    async def _in_thread(
        self, threads: ThreadPoolExecutor, function: Callable[..., Result], *args: Any
    ) -> Result:
        future = asyncio.get_running_loop().run_in_executor(threads, function, *args)
        try:
            return await asyncio.wait_for(asyncio.shield(future), self.call_seconds)
        except TimeoutError:
            if future.done():
                return future.result()
            self._stuck = future
            future.add_done_callback(_forget)
            raise ManagerError(f"libvirt did not answer within {self.call_seconds:g} s") from None
        except asyncio.CancelledError:
            future.add_done_callback(_forget)
            raise

    def lookup(self) -> libvirt.virDomain | None:
        """The domain; None when libvirt has none of that name. Blocks. Raises libvirtError."""
        try:
            return self.connection.raw.lookupByName(self.options.domain)
        except libvirt.libvirtError as error:
            if is_not_found(error):
                return None
            raise

    def domain(self) -> libvirt.virDomain:
        """The domain. Blocks. Raises NoDomainError when there is none."""
        found = self.lookup()
        if found is None:
            raise NoDomainError(self.options.domain)
        return found

    # ---- turns

    async def exclusively(self, work: Callable[[], Coroutine[Any, Any, Result]]) -> Result:
        """Do the work when its turn comes, one after another.

        It is done to its end even when whoever asked has gone. Raises ManagerError when too many wait.
        """
        if self._waiting >= MOST_WAITING:
            raise ManagerError(f"{self._waiting} earlier requests are still waiting for their turn")
        self._waiting += 1  # before the task runs: requests may come all at once
        task = self.in_background(self._take_turn(work))
        task.add_done_callback(self._had_turn)
        return await asyncio.shield(task)

    async def _take_turn(self, work: Callable[[], Coroutine[Any, Any, Result]]) -> Result:
        async with self._turn:
            if self._stuck is not None and not self._stuck.done():
                raise ManagerError("an earlier call to libvirt has not come back")
            self._stuck = None
            return await work()

    def _had_turn(self, _task: asyncio.Task[Any]) -> None:
        self._waiting -= 1

    async def to_its_end(self, work: Coroutine[Any, Any, Result]) -> Result:
        """Do work of several steps that belong together also when whoever asked has gone: a client's deadline
        cancels its call wherever that is.
        """
        return await asyncio.shield(self.in_background(work))

    def in_background(self, work: Coroutine[Any, Any, Result]) -> asyncio.Task[Result]:
        """Start work that nobody may wait for; :meth:`close` ends it."""
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._done)
        return task

    def _done(self, task: asyncio.Task[Any]) -> None:
        self._tasks.discard(task)
        _forget(task)

    async def close(self) -> None:
        """End what runs in the background; libvirt's calls under way are left to themselves."""
        for task in tuple(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        self._threads.shutdown(wait=False, cancel_futures=True)
        self._agent_threads.shutdown(wait=False, cancel_futures=True)

    # ---- who is meant

    def check(self, vmi: Instance) -> None:
        """Raise ManagerError unless the VMI is the one that this launcher is for."""
        own = self.options
        if (vmi.namespace, vmi.name) != (own.namespace, own.name):
            raise ManagerError(
                f"the request is about {vmi.namespace or '?'}/{vmi.name or '?'}, and this is the launcher of "
                f"{own.namespace}/{own.name}"
            )
        if vmi.uid and own.uid and vmi.uid != own.uid:
            raise ManagerError(
                f"the request is about a VMI with UID {vmi.uid}, and this is the launcher of the one with "
                f"{own.uid}"
            )


def _forget(future: asyncio.Future[Any]) -> None:
    """Take note of an error, so that nobody is told that it was never looked at."""
    with contextlib.suppress(asyncio.CancelledError):
        error = future.exception()
        if error is not None:
            logger.debug("in the background: %s", error)
