"""``virt-launcher-monitor``: becomes :mod:`kvnode.launcher.monitor`, which starts ``virt-launcher``.

It takes the launcher's flags, keeps what is its own and passes all but ``--keep-after-failure`` on
(``cmd/virt-launcher-monitor/virt-launcher-monitor.go:93``). The monitor itself is run as a file by a bare
interpreter, so that the process that stays holds next to nothing.
"""

from __future__ import annotations

import contextlib
import os
import signal
import sys
from collections.abc import Sequence
from pathlib import Path

from kvnode.launcher.programs.ambient import raise_net_bind_service

_KEEP = "--keep-after-failure"
_DISKS = "--container-disk-dir"
#: Where containers have their disks when no flag names another directory.
DEFAULT_DISKS = "/var/run/kubevirt/container-disks"
#: Signals that ask for the end, and must not be lost however early they come.
STOP_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGQUIT)


def main(argv: Sequence[str] | None = None) -> int:
    """Become the monitor; returns only when that fails."""
    # The kernel drops signals that a first process has no handler for, unless they are blocked. The monitor takes
    # those that came meanwhile.
    unblocked = signal.pthread_sigmask(signal.SIG_BLOCK, STOP_SIGNALS)
    command = monitor_command(sys.argv[1:] if argv is None else list(argv), Path(sys.argv[0]))
    os.environ.setdefault("MALLOC_ARENA_MAX", "1")  # the launcher's threads wait; they need no heap each
    if os.geteuid() != 0:
        with contextlib.suppress(OSError):  # a pod that was not given it: only port 67 is closed to it then
            raise_net_bind_service()
    try:
        os.execv(command[0], command)  # noqa: S606
    except OSError as error:
        signal.pthread_sigmask(signal.SIG_SETMASK, unblocked)
        sys.stderr.write(f"virt-launcher-monitor: {command[0]} does not start: {error.strerror}\n")
        return 1


def monitor_command(arguments: list[str], program: Path) -> list[str]:
    """Return the command that does what ``program``, called with ``arguments``, is to do.

    The launcher is expected beside the program that was called.
    """
    keep, disks = False, DEFAULT_DISKS
    passed_on = []
    for position, word in enumerate(arguments):
        if word in (_KEEP, f"{_KEEP}=true"):
            keep = True
            continue
        if word == f"{_KEEP}=false":
            continue
        passed_on.append(word)
        if word == _DISKS and position + 1 < len(arguments):
            disks = arguments[position + 1]
        elif word.startswith(f"{_DISKS}="):
            disks = word.partition("=")[2]
    monitor = Path(__file__).parent.parent / "monitor.py"
    command = [sys.executable, "-I", "-S", str(monitor), "--pod", _DISKS, disks]
    if keep:
        command.append(_KEEP)
    return [*command, "--", _launcher(program), *passed_on]


def _launcher(program: Path) -> str:
    beside = program.absolute().with_name("virt-launcher")
    return str(beside) if beside.exists() else "/usr/bin/virt-launcher"
