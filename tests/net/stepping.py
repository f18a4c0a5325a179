"""Set-ups that fail, or whose agent dies, at one of their steps."""

from __future__ import annotations

import functools
import multiprocessing
import os
import signal
from collections.abc import Callable
from typing import Any, cast

from kvnode.net import inroot
from kvnode.net.cache import Cache, RecordedProgresses
from kvnode.net.desired import Request
from kvnode.net.driver import Driver
from kvnode.net.podnetwork import ProcessNamespace
from kvnode.net.setup import setup

_PROCESSES = multiprocessing.get_context("forkserver")
_PROCESSES.set_forkserver_preload([__name__, "kvnode.net.kernel"])


class Steps:
    """Counts what is asked of the kernel, and calls ``event`` in place of the one at ``last``."""

    def __init__(self, last: int, event: Callable[[str], object]) -> None:
        """Steps are counted from 0."""
        self._left = last
        self._event = event

    def take(self, name: str) -> None:
        """One more."""
        self._left -= 1
        if self._left == -1:
            self._event(name)

    @property
    def is_over(self) -> bool:
        """Whether the event has come."""
        return self._left < 0


class SteppedDriver:
    """A driver whose calls are counted."""

    def __init__(self, driver: Driver, steps: Steps) -> None:
        """Counts in ``steps``."""
        self._driver = driver
        self._steps = steps

    def __getattr__(self, name: str) -> Any:
        call = getattr(self._driver, name)

        @functools.wraps(call)
        def stepped(*arguments: Any, **more: Any) -> Any:
            self._steps.take(name)
            return call(*arguments, **more)

        return stepped


class SteppedNamespace:
    """A pod's namespace whose driver's calls are counted."""

    def __init__(self, pid: int, steps: Steps) -> None:
        """``pid`` is the pod's."""
        self._namespace = ProcessNamespace(pid)
        self._steps = steps

    def run(self, work: Callable[[Driver], None]) -> None:
        """Do something in it."""
        self._namespace.run(lambda driver: work(cast(Driver, SteppedDriver(driver, self._steps))))


def dies_at(step: int, request: Request, cache: Cache) -> bool:
    """Set a pod up in a process that kills itself at that step; whether it came to that."""
    process = _PROCESSES.Process(target=_set_up, args=(step, request, cache))
    process.start()
    process.join()
    assert process.exitcode in {0, -signal.SIGKILL}
    return process.exitcode != 0


def _set_up(step: int, request: Request, cache: Cache) -> None:
    steps = Steps(step, lambda _: os.kill(os.getpid(), signal.SIGKILL))
    write = inroot.write

    def written(*arguments: Any, **more: Any) -> None:
        steps.take("write")
        write(*arguments, **more)

    inroot.write = written
    setup(request, cache, RecordedProgresses(cache), SteppedNamespace(request.launcher_pid, steps))
