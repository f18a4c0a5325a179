"""Whether the launchers of this node can be expected to answer.

``pkg/virt-handler/launcher-clients/launcher-clients.go:162-208``, ``virt-handler/cache/domain-watcher.go:176-248``
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path

from kvnode.agent.parts import LauncherState
from kvnode.agent.sockets import Sockets, is_unresponsive
from kvnode.agent.vmi import Vmi, uid_of

START = timedelta(minutes=3)
"""How long a pod may be there without a launcher that can be spoken to."""

TIMEOUT = 30.0
"""Seconds without an answer after which a launcher counts as dead (``cmd/virt-handler/virt-handler.go:94-121``)."""

PERIOD = TIMEOUT / 3 + 1
"""Seconds between two questions to a launcher."""

HasProcess = Callable[[Vmi], bool]
"""Whether a process of the VMI's QEMU is known to live on this node."""


@dataclass(slots=True)
class _Search:
    since: datetime
    socket: Path | None = None


class LauncherStates:
    """What is known of each launcher that was looked for."""

    def __init__(self, sockets: Sockets, now: Callable[[], datetime], has_process: HasProcess) -> None:
        self._sockets = sockets
        self._now = now
        self._has_process = has_process
        self._searches: dict[str, _Search] = {}

    def state(self, vmi: Vmi) -> LauncherState:
        """The state of the VMI's launcher.

        One whose files are gone is not dead as long as its QEMU is known to live: kubelet may have been down when the
        pod was deleted by force. Raises AgentError when several launchers answer for the VMI.
        """
        search = self._searches.setdefault(uid_of(vmi), _Search(self._now()))
        if search.socket is None:
            search.socket = self._sockets.find(vmi)
        if search.socket is not None:
            gone = is_unresponsive(search.socket)
        elif self._sockets.has_folder(vmi):
            gone = self._now() - search.since > START
            if not gone:
                return LauncherState.STARTING
        else:
            gone = True
        return LauncherState.UNRESPONSIVE if gone and not self._has_process(vmi) else LauncherState.READY

    def waiting_since(self, vmi: Vmi) -> datetime | None:
        """When the launcher was first looked for; None when it never was."""
        search = self._searches.get(uid_of(vmi))
        return search.since if search else None

    def forget(self, vmi: Vmi) -> None:
        """The VMI is gone, or its launcher is looked for anew."""
        self._searches.pop(uid_of(vmi), None)

    def __len__(self) -> int:
        return len(self._searches)


class Watchdog:
    """How long each launcher has not answered."""

    def __init__(self, clock: Callable[[], float], timeout: float = TIMEOUT) -> None:
        """`clock` gives seconds that only grow."""
        self._clock = clock
        self._timeout = timeout
        self._silent: dict[str, float] = {}

    def heard(self, socket: str, answered: bool) -> bool:
        """Note the outcome of a question; tell whether the launcher counts as dead now.

        A launcher is asked again and again: one answer makes up for all that were missed.
        """
        if answered:
            self._silent.pop(socket, None)
            return False
        now = self._clock()
        return now - self._silent.setdefault(socket, now) > self._timeout

    def keep(self, sockets: Iterable[str]) -> None:
        """Forget all but these."""
        kept = set(sockets)
        self._silent = {socket: since for socket, since in self._silent.items() if socket in kept}

    def __len__(self) -> int:
        return len(self._silent)
