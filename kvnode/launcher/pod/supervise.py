"""Programs that belong to the launcher and are started again when they end, watched without a thread."""

from __future__ import annotations

import asyncio
import contextlib
import os
import subprocess
from collections.abc import Callable, Mapping, Sequence

from kvnode.launcher.errors import LauncherError
from kvnode.launcher.log import logger

#: Seconds before a program that ended is started again (``pkg/virt-launcher/virtwrap/util/libvirt_helper.go:300``).
RESTART_SECONDS = 1.0
#: Seconds that a program may take to end before it is killed.
STOP_SECONDS = 2.0


class Supervised:
    """One program. Its standard error is the launcher's."""

    def __init__(
        self, name: str, command: Sequence[str], environment: Mapping[str, str] | None = None
    ) -> None:
        """Remember what to run."""
        self.name = name
        self.starts = 0
        self._command = list(command)
        self._environment = environment
        self._process: subprocess.Popen[bytes] | None = None
        self._keeper: asyncio.Task[None] | None = None
        self._between: Callable[[], None] | None = None

    @property
    def pid(self) -> int:
        """Process id as it runs now; 0 while it does not."""
        return self._process.pid if self._process is not None else 0

    async def start(self) -> None:
        """Start it, and keep it running from now on; raises LauncherError when it cannot be started at all."""
        self._process = self._spawn()
        self._keeper = asyncio.get_running_loop().create_task(self._keep(), name=self.name)

    def replace(self, between: Callable[[], None]) -> None:
        """Kill it; ``between()`` is called when it has ended, before it is started again."""
        self._between = between
        if self._process is not None:
            self._process.kill()

    async def stop(self) -> None:
        """End it for good: SIGTERM, then SIGKILL."""
        if self._keeper is not None:
            self._keeper.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self._keeper
        process, self._process = self._process, None
        if process is None or process.poll() is not None:
            return
        process.terminate()
        try:
            await asyncio.wait_for(_ended(process), STOP_SECONDS)
        except TimeoutError:
            process.kill()
            await _ended(process)

    async def _keep(self) -> None:
        while True:
            if self._process is not None:
                status = await _ended(self._process)
                self._process = None
                logger.error("%s ended with status %d; starting it again", self.name, status)
            await asyncio.sleep(RESTART_SECONDS)
            between, self._between = self._between, None
            try:
                if between is not None:
                    between()
                self._process = self._spawn()
            except (LauncherError, OSError) as error:
                logger.error("%s", error)

    def _spawn(self) -> subprocess.Popen[bytes]:
        try:
            process = subprocess.Popen(
                self._command, env=self._environment, stdin=subprocess.DEVNULL, cwd="/", restore_signals=True
            )
        except OSError as error:
            raise LauncherError(
                "LibvirtMissing", f"{self._command[0]} does not start: {error.strerror}"
            ) from None
        self.starts += 1
        return process


async def _ended(process: subprocess.Popen[bytes]) -> int:
    """Wait until a process has ended, and return its status; only this process id is ever waited for."""
    loop = asyncio.get_running_loop()
    ended = asyncio.Event()
    descriptor = os.pidfd_open(process.pid)
    loop.add_reader(descriptor, ended.set)
    try:
        await ended.wait()
    finally:
        loop.remove_reader(descriptor)
        os.close(descriptor)
    return process.wait()
