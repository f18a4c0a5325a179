"""Processes of a launcher, out of /proc (proc(5))."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

PROC = Path("/proc")


class Held:
    """A process whose folder in /proc is held open.

    What is reached by `path` is that process' own, or an error once it has ended: never another's, who has been given
    its PID. Whoever goes by `path` keeps this object meanwhile; with the last reference the folder is let go.
    """

    def __init__(self, pid: int, proc: Path = PROC) -> None:
        """Raises OSError when there is no such process."""
        self._file = -1
        self._file = os.open(proc / str(pid), os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)

    @property
    def path(self) -> Path:
        """Its folder in /proc."""
        return Path(f"/proc/self/fd/{self._file}")

    def lives(self) -> bool:
        """Whether it has not ended, or not been waited for yet."""
        try:
            (self.path / "stat").stat()
        except OSError:
            return False
        return True

    def __del__(self) -> None:
        if self._file >= 0:
            os.close(self._file)


@dataclass(frozen=True, slots=True)
class Household:
    """A launcher, and the monitor above it whose children QEMU's processes become."""

    monitor: int
    started: int
    """When the monitor started, in ticks since boot: another process of the same PID is not the monitor."""

    def has_qemu(self, proc: Path = PROC) -> bool:
        """Whether a QEMU lives in it."""
        found = _stat(proc / str(self.monitor))
        if found is None or found[2] != self.started:
            return False
        return any(name.startswith("qemu") for _, name in descendants(self.monitor, proc))


def household_of(pid: int, proc: Path = PROC) -> Household:
    """The household of the launcher with this PID."""
    top = max(parent_of(pid, proc), 0)
    top = top if top > 1 else pid
    found = _stat(proc / str(top))
    return Household(top, found[2] if found else -1)


def parent_of(pid: int, proc: Path = PROC) -> int:
    """PID of a process' parent; 0 when it is gone or has none in sight."""
    found = _stat(proc / str(pid))
    return found[1] if found else 0


def descendants(pid: int, proc: Path = PROC) -> Iterator[tuple[int, str]]:
    """PID and name of all processes below one, in no special order; those that end meanwhile are passed over."""
    children: dict[int, list[tuple[int, str]]] = {}
    for entry in proc.iterdir():
        if entry.name.isdigit() and (found := _stat(entry)):
            children.setdefault(found[1], []).append((int(entry.name), found[0]))
    waiting = [pid]
    while waiting:
        for child, name in children.pop(waiting.pop(), ()):
            waiting.append(child)
            yield child, name


def _stat(folder: Path) -> tuple[str, int, int] | None:
    """Name (at most 15 characters), parent and time of start."""
    try:
        text = (folder / "stat").read_text(errors="replace")
    except OSError:
        return None
    # The name stands in parentheses and may hold anything.
    name, _, rest = text.partition("(")[2].rpartition(")")
    fields = rest.split()
    return (name, int(fields[1]), int(fields[19])) if len(fields) > 19 else None
