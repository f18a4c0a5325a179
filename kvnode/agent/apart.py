"""Work on files that VMs bring along: their storage may hang, and a thread in it cannot be called back."""

from __future__ import annotations

import asyncio
import contextlib
import threading
from collections.abc import Callable
from typing import TypeVar

from kvnode.agent.errors import AgentError

LONGEST = 60.0
"""Seconds that a pass waits for it."""
AT_ONCE = 16
"""Threads in which it has not been given up: each costs the agent memory for good."""

Answer = TypeVar("Answer")


class Apart:
    """Threads for it: one for each VM at most, and none that anybody else would need or the agent's end waits for."""

    def __init__(self) -> None:
        """Nothing runs yet."""
        self._running: set[str] = set()
        self._turns = asyncio.Semaphore(AT_ONCE)

    async def run(self, uid: str, what: str, work: Callable[[], Answer]) -> Answer:
        """Do ``work``, which ``what`` names, for the VM of that UID; what it raises is raised here.

        Raises:
            AgentError: it takes too long, or what was begun earlier has not ended yet.
        """
        if uid in self._running:
            raise AgentError(f"{what}: has not ended yet; the storage of a volume may hang")
        async with self._turns:
            ended = self._begin(uid, work)
            await asyncio.wait({ended}, timeout=LONGEST)
        if not ended.done():
            raise AgentError(f"{what}: has not ended within {LONGEST:g} s; the storage of a volume may hang")
        return ended.result()

    def _begin(self, uid: str, work: Callable[[], Answer]) -> asyncio.Future[Answer]:
        """Start the thread."""
        loop = asyncio.get_running_loop()
        ended: asyncio.Future[Answer] = loop.create_future()

        def end(answer: Answer | None, error: BaseException | None) -> None:
            self._running.discard(uid)
            if ended.cancelled():
                return
            if error is not None:
                ended.set_exception(error)
                ended.exception()  # known, should nobody wait any more
            else:
                ended.set_result(answer)  # type: ignore[arg-type]

        def body() -> None:
            answer, failure = None, None
            try:
                answer = work()
            except BaseException as error:  # handed to the caller
                failure = error
            with contextlib.suppress(RuntimeError):  # the loop has ended meanwhile
                loop.call_soon_threadsafe(end, answer, failure)

        self._running.add(uid)
        threading.Thread(target=body, name=f"apart-{uid}", daemon=True).start()
        return ended
