"""The files in which libvirt's daemon keeps that a domain runs: QEMU's process id, and the domain's status.

A daemon that is killed while it starts QEMU, between the process and its answer, takes QEMU with it and leaves both
files behind. The daemon after it reads them and holds the domain for one that starts: ``Paused (StartingUp)``, under
a job that nobody owns, so that every call that would change it waits its 30 seconds and fails (libvirt 9.0). Only
without those files does a daemon find the domain as it is, shut off and ready to be started.
"""

from __future__ import annotations

from pathlib import Path

#: Seconds for which a domain must be active without a QEMU until its start is held for lost.
LOST_SECONDS = 3.0
#: Seconds between looks at it.
LOOK_SECONDS = 0.25


def is_alive(pid: int) -> bool:
    """Whether a process lives; a zombie does not (its parent may be slow to reap it)."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_bytes()
    except OSError:
        return False
    return stat.rpartition(b")")[2].split()[0] not in (b"Z", b"X")


def qemu_lives(pid_file: Path) -> bool:
    """Whether the process that the file names lives; without a file there is none."""
    try:
        return is_alive(int(pid_file.read_text(encoding="ascii")))
    except (OSError, ValueError):
        return False


def forget_start(pid_file: Path) -> None:
    """Remove what says that the domain runs; for a time when no daemon runs. Its definition stays. Raises OSError."""
    pid_file.with_suffix(".xml").unlink(missing_ok=True)
    pid_file.unlink(missing_ok=True)
