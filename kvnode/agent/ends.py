"""How VMs ended, from the deletion of their domains until their status says it.

A domain is deleted before the status is written, as the reference does it (``pkg/virt-handler/vm.go:1404-1419``). When
that write fails, or the agent ends before it, nobody else knows whether the guest had powered itself off or crashed.
Where the disk has no room for it, the status is written first, while the launcher still has the domain.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Collection
from pathlib import Path
from typing import Any

import orjson

from kvnode.agent.domain import Domain

logger = logging.getLogger(__name__)


class Ends:
    """The last domains of VMs, by UID; one JSON file each in a folder, or in memory alone without one."""

    def __init__(self, directory: Path | None = None) -> None:
        """Read what an earlier agent left in ``directory``, which is made; files that are none are removed.

        Raises:
            OSError: the folder cannot be used.
        """
        self._directory = directory
        self._domains: dict[str, Domain] = {}
        self._unwritten: set[str] = set()
        if directory is None:
            return
        directory.mkdir(mode=0o700, parents=True, exist_ok=True)
        for path in sorted(directory.iterdir()):
            if (raw := _read(path)) is None:
                _remove(path)
            else:
                self._domains[path.name] = Domain(raw)

    def get(self, uid: str) -> Domain | None:
        """The domain of a VM that ended and whose status does not say how; None when there is none."""
        return self._domains.get(uid)

    def keep(self, uid: str, domain: Domain) -> bool:
        """Remember a domain that is about to be deleted; tell whether that outlives this process.

        Without room on the disk, memory alone has it, and it is tried again the next time. Without a folder memory is
        all that is wanted.
        """
        if self.get(uid) is domain and uid not in self._unwritten:
            return True
        self._domains[uid] = domain
        if self._directory is None:
            return True
        temporary = self._directory / f".{uid}"
        try:
            with temporary.open("wb") as file:
                file.write(orjson.dumps(domain.raw))
                file.flush()
                os.fsync(file.fileno())
            temporary.replace(self._directory / uid)
        except OSError as error:
            _remove(temporary)
            self._unwritten.add(uid)
            logger.warning("%s: how it ended is not on the disk: %s", domain.key, error)
            return False
        self._unwritten.discard(uid)
        return True

    def forget(self, uid: str) -> None:
        """The status says it, or nobody asks any more. A file that cannot be removed is left to the next agent."""
        self._unwritten.discard(uid)
        if self._domains.pop(uid, None) is not None and self._directory is not None:
            _remove(self._directory / uid)

    def forget_others(self, key: str, uid: str) -> None:
        """Forget VMIs of this name that were before the one of ``uid``; all of them when that is ""."""
        for other in [one for one, domain in self._domains.items() if domain.key == key and one != uid]:
            self.forget(other)

    def retain(self, uids: Collection[str]) -> None:
        """Forget all others."""
        for uid in self._domains.keys() - uids:
            self.forget(uid)


def _remove(path: Path) -> None:
    try:
        path.unlink(missing_ok=True)
    except OSError as error:
        logger.warning("%s: is left: %s", path, error.strerror)


def _read(path: Path) -> dict[str, Any] | None:
    try:
        found = orjson.loads(path.read_bytes())
    except (OSError, orjson.JSONDecodeError):
        return None
    return found if isinstance(found, dict) and Domain(found).uid == path.name else None
