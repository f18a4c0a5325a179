"""Writing the guest's memory to a file (``pkg/virt-launcher/virtwrap/storage/memoryDump.go``)."""

from __future__ import annotations

from pathlib import Path

import libvirt

from kvnode.launcher.log import logger
from kvnode.launcher.manager.errors import ManagerError, describe
from kvnode.launcher.manager.host import Host
from kvnode.launcher.manager.metadata import now

_NAME = "memory.dump"
SECTION = "MemoryDump"


class MemoryDumper:
    """Dumps in the background, one at a time; how it went is in the metadata."""

    def __init__(self, host: Host) -> None:
        """Dump the domain of ``host``."""
        self._host = host
        self._busy = False

    def start(self, path: str) -> None:
        """Begin to write to ``path``. One that is under way, or was the last, is not begun again.

        Raises:
            ManagerError: the path is not absolute.
        """
        target = Path(path)
        if not target.is_absolute() or ".." in target.parts or not target.name:
            raise ManagerError(f"dumpPath must be an absolute path of a file, is {path[:200]!r}")
        last = self._host.metadata.section(SECTION)
        if self._busy or (last is not None and last["FileName"] == target.name):
            return
        self._busy = True
        self._host.in_background(self._dump(target))

    async def _dump(self, target: Path) -> None:
        metadata = self._host.metadata
        try:
            metadata.replace(SECTION, FileName=target.name, StartTimestamp=now())
            failure = ""
            try:
                await self._host.ask_agent(self._write, target)
            except Exception as error:
                failure = f"the memory dump failed: {describe(error)}"
                logger.error("%s", failure)
            metadata.update(
                SECTION, Completed=True, EndTimestamp=now(), Failed=bool(failure), FailureReason=failure
            )
        finally:
            self._busy = False

    def _write(self, target: Path) -> None:
        domain = self._host.domain()
        _remove_old(target.parent)
        domain.coreDumpWithFormat(
            str(target), libvirt.VIR_DOMAIN_CORE_DUMP_FORMAT_RAW, libvirt.VIR_DUMP_MEMORY_ONLY
        )
        logger.info("dumped the guest's memory to %s", target)


def _remove_old(directory: Path) -> None:
    """Make room: a claim is sized for one dump."""
    try:
        for entry in directory.iterdir():
            if _NAME in entry.name and not entry.is_dir():
                entry.unlink()
    except OSError as error:
        logger.warning("older memory dumps cannot be removed: %s", error)
