"""What SeaBIOS says, into the launcher's log: QEMU writes it to a named pipe that this process keeps open
(``pkg/virt-launcher/virtwrap/util/libvirt_helper.go:startQEMUSeaBiosLogging``).
"""

from __future__ import annotations

import asyncio
import os
from pathlib import Path

from kvnode.launcher import paths
from kvnode.launcher.log import logger

PIPE = paths.PRIVATE / "QEMUSeaBiosDebugPipe"
#: Longest line that is waited for the end of.
_LONGEST = 4096


class FirmwareLog:
    """The reading end of the pipe."""

    def __init__(self, pipe: Path = PIPE) -> None:
        """Read from ``pipe``."""
        self._pipe = pipe
        self._descriptor = -1
        self._rest = b""

    def start(self) -> None:
        """Make the pipe and read what comes; a log line when that cannot be done."""
        try:
            if not self._pipe.exists():
                os.mkfifo(self._pipe)
            self._pipe.chmod(0o666)
            # Open for writing as well: else its end is reported over and over while nobody writes.
            self._descriptor = os.open(self._pipe, os.O_RDWR | os.O_NONBLOCK | os.O_CLOEXEC)
        except OSError as error:
            logger.warning("the firmware's log cannot be read from %s: %s", self._pipe, error.strerror)
            return
        asyncio.get_running_loop().add_reader(self._descriptor, self._read)

    def stop(self) -> None:
        """Read no more."""
        if self._descriptor >= 0:
            asyncio.get_running_loop().remove_reader(self._descriptor)
            os.close(self._descriptor)
            self._descriptor = -1

    def _read(self) -> None:
        try:
            data = os.read(self._descriptor, 65536)
        except BlockingIOError:
            return
        *lines, self._rest = (self._rest + data).split(b"\n")
        if len(self._rest) > _LONGEST:
            lines.append(self._rest)
            self._rest = b""
        for line in lines:
            logger.info("[SeaBIOS] %s", line.decode(errors="replace").rstrip("\r"))
