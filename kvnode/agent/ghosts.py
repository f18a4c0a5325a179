"""Records of launchers on disk, so that an agent that starts knows whom to ask.

One JSON file for each VMI, named by its UID (``pkg/virt-handler/cache/cache.go:77-226``). A record is written before
anything is started for a VMI, and goes last. Beside what the reference has in it, which agents of both read, it names
the process below which the VM's QEMU is found when the launcher's files are gone.
"""

from __future__ import annotations

import logging
import os
import re
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path
from typing import Any

import orjson

from kvnode.agent.errors import AgentError
from kvnode.agent.ghost import Ghost
from kvnode.agent.processes import Household

logger = logging.getLogger(__name__)

Answers = Callable[[str], Awaitable[bool]]
"""Whether a launcher answers at a socket."""

_PROCESS = "process"
_UID = re.compile(r"[0-9A-Za-z][0-9A-Za-z.-]*")


class GhostRecords:
    """All records of this node, in memory and on disk."""

    def __init__(self, directory: Path) -> None:
        """Read the records in ``directory``; files that are no records are told of and left alone."""
        self._directory = directory
        self._records: dict[str, Ghost] = {}
        self._households: dict[str, Household] = {}
        directory.mkdir(mode=0o700, parents=True, exist_ok=True)
        for path in sorted(directory.iterdir()):
            if path.name.startswith("."):
                path.unlink(missing_ok=True)  # left by a write that was cut off
            elif (found := _read(path)) is not None:
                ghost, household = found
                self._records[ghost.key] = ghost
                if household is not None:
                    self._households[ghost.uid] = household

    def __iter__(self) -> Iterator[Ghost]:
        return iter(list(self._records.values()))

    def last_known_uid(self, key: str) -> str:
        """UID of the VMI that last had the name here; "" when there is no record."""
        ghost = self._records.get(key)
        return ghost.uid if ghost else ""

    def household(self, uid: str) -> Household | None:
        """The processes of a VMI's launcher; None when they were never seen."""
        return self._households.get(uid)

    async def add(self, ghost: Ghost, answers: Answers, household: Household | None = None) -> None:
        """Record a launcher, and its processes where they are known.

        Another record of the same name is replaced when nobody answers at its socket any more and its QEMU has ended.

        Raises:
            AgentError: the record lacks a part, the launcher of an older VMI still answers or its QEMU lives, or there
                is no room.
        """
        for part, value in (("namespace", ghost.namespace), ("name", ghost.name), ("socket", ghost.socket)):
            if not value:
                raise AgentError(f"record of a launcher: {part} must not be empty")
        if not _UID.fullmatch(ghost.uid):
            raise AgentError(f"record of the launcher of {ghost.key}: uid must be a UID, not {ghost.uid!r}")
        known = self._records.get(ghost.key)
        household = household or self._households.get(ghost.uid)
        if known == ghost and household == self._households.get(ghost.uid):
            return
        if known is not None and known != ghost:
            if await answers(known.socket):
                raise AgentError(
                    f"{ghost.key}: the launcher of an older VM of that name ({known.uid}) still answers "
                    f"at {known.socket}"
                )
            left = self._households.get(known.uid)
            if known.uid != ghost.uid and left is not None and left.has_qemu():
                raise AgentError(
                    f"{ghost.key}: QEMU of an older VM of that name ({known.uid}) still runs on this node"
                )
            logger.info("%s: nobody answers at %s any more: its record goes", known.key, known.socket)
            self.delete(known.key)
        self._write(ghost, household)
        self._records[ghost.key] = ghost
        if household is not None:
            self._households[ghost.uid] = household

    def delete(self, key: str) -> None:
        """Drop the record of a name, if there is one; raises AgentError when the file cannot be removed."""
        known = self._records.get(key)
        if known is None:
            return
        path = self._directory / known.uid
        try:
            path.unlink(missing_ok=True)
        except OSError as error:
            raise AgentError(f"{path}: the record cannot be removed: {error.strerror}") from error
        del self._records[key]
        self._households.pop(known.uid, None)

    def _write(self, ghost: Ghost, household: Household | None) -> None:
        path = self._directory / ghost.uid
        temporary = self._directory / f".{ghost.uid}"
        data: dict[str, Any] = {
            "name": ghost.name,
            "namespace": ghost.namespace,
            "socketFile": ghost.socket,
            "uid": ghost.uid,
        }
        if household is not None:
            data[_PROCESS] = {"pid": household.monitor, "started": household.started}
        text = orjson.dumps(data)
        try:
            with temporary.open("wb") as file:
                file.write(text)
                file.flush()
                os.fsync(file.fileno())
            temporary.replace(path)
        except OSError as error:
            temporary.unlink(missing_ok=True)
            raise AgentError(
                f"{path}: the record of {ghost.key} cannot be written: {error.strerror}"
            ) from error


def _read(path: Path) -> tuple[Ghost, Household | None] | None:
    try:
        found = orjson.loads(path.read_bytes())
        ghost = Ghost(found["namespace"], found["name"], found["uid"], found["socketFile"])
        household = _household(found.get(_PROCESS))
    except (OSError, orjson.JSONDecodeError, KeyError, TypeError) as error:
        logger.warning("%s: is no record of a launcher: %s", path, error)
        return None
    parts = (ghost.namespace, ghost.name, ghost.uid, ghost.socket)
    if all(isinstance(part, str) and part for part in parts) and ghost.uid == path.name:
        return ghost, household
    logger.warning("%s: is no record of a launcher: a part is missing, or it is of another UID", path)
    return None


def _household(found: object) -> Household | None:
    """The processes, as a record has them; None in one that an agent wrote who did not know them."""
    if not isinstance(found, dict):
        return None
    pid, started = found.get("pid"), found.get("started")
    if type(pid) is int and type(started) is int and pid > 1 and started >= 0:
        return Household(pid, started)
    return None
