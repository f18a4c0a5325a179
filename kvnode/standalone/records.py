"""Small files of the state directory: written whole or not at all, and read with distrust.

A process is on record by its id, its start time and the machine's boot: an id that another process has since
been given, or one of before a reboot, is never taken for it.
"""

from __future__ import annotations

import json
import os
import signal
import tempfile
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

#: File with the first process of a VM's namespaces.
LAUNCHER_PID = "launcher.pid"

#: No file of the state directory is larger than this (a VMI has at most 1.5 MiB in a cluster).
_LARGEST = 16 << 20


@dataclass(frozen=True)
class Process:
    """A process on record."""

    pid: int
    start: int
    """Clock ticks after boot (field 22 of /proc/PID/stat)."""

    boot: str


def write_atomically(path: Path, content: bytes) -> None:
    """Give ``path`` this content: a reader sees the old file or the new one. Raises OSError."""
    descriptor, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(content)
        Path(name).replace(path)
    except BaseException:
        Path(name).unlink(missing_ok=True)
        raise


def write_json(path: Path, value: object) -> None:
    """Write ``value`` as indented JSON, as :func:`write_atomically` does."""
    write_atomically(path, json.dumps(value, indent=1).encode() + b"\n")


def read_json(path: Path) -> dict[str, Any] | None:
    """Return the JSON object in ``path``; None when it is absent, unreadable, no object or absurdly large."""
    try:
        # Not even a FIFO keeps whoever opens it so waiting: it reads as empty.
        with open(os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC), "rb") as file:  # noqa: PTH123
            raw = file.read(_LARGEST + 1) or b""
        value = json.loads(raw) if len(raw) <= _LARGEST else None
    except (OSError, ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) else None


def write_process(path: Path, pid: int) -> None:
    """Put a living process on record; raises OSError when it is gone."""
    write_json(path, asdict(Process(pid, _start(pid), _boot())))


def read_process(path: Path) -> Process | None:
    """Return the process on record, or None when the file is absent or damaged."""
    raw = read_json(path) or {}
    pid, start, boot = raw.get("pid"), raw.get("start"), raw.get("boot")
    if isinstance(pid, int) and isinstance(start, int) and isinstance(boot, str) and pid > 0:
        return Process(pid, start, boot)
    return None


def alive(process: Process | None) -> bool:
    """Tell whether exactly that process lives (a zombie does not)."""
    if process is None or process.boot != _boot():
        return False
    try:
        fields = _stat(process.pid)
    except OSError:
        return False
    return fields[0] not in {"Z", "X"} and int(fields[19]) == process.start


def send_signal(process: Process, number: signal.Signals) -> bool:
    """Send a signal to exactly that process; False when it does not live any more."""
    try:
        descriptor = os.pidfd_open(process.pid)
    except ProcessLookupError:
        return False
    try:
        if not alive(process):
            return False
        signal.pidfd_send_signal(descriptor, number)
    except ProcessLookupError:
        return False
    finally:
        os.close(descriptor)
    return True


def _stat(pid: int) -> list[str]:
    """Return the fields of /proc/PID/stat from the third on (the second may hold spaces)."""
    return Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace").rpartition(")")[2].split()


def _start(pid: int) -> int:
    return int(_stat(pid)[19])


def _boot() -> str:
    return Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip()
