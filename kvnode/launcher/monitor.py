"""First process of a VM's namespaces: starts the launcher, reaps every orphan, ends the VM when the launcher
dies.

Run as a file (``python -I -S monitor.py [--keep-after-failure] -- LAUNCHER ARGUMENT...``) so that nothing but
the standard library is loaded, and little of it: this process exists once a VM. What it does is fixed by
``cmd/virt-launcher-monitor/virt-launcher-monitor.go``:

* SIGINT, SIGTERM and SIGQUIT reach the launcher as SIGTERM, each time they come;
* QEMU, left behind by a launcher that ended, gets SIGTERM, ten seconds, then SIGKILL;
* the exit status is the launcher's (128 + the signal's number, when a signal ended it), or 1 on an error of
  its own.
"""

import contextlib
import os
import signal
import sys
import time

#: Seconds between SIGTERM and SIGKILL for a QEMU without a launcher.
QEMU_GRACE = 10.0

_PASSED_ON = (signal.SIGINT, signal.SIGTERM, signal.SIGQUIT)


def main(argv: list[str]) -> int:
    """Run the launcher to its end and return the exit status."""
    keep = False
    while argv and argv[0] != "--":
        if argv[0] != "--keep-after-failure":
            _say(
                f"unknown option {argv[0]}; usage: monitor.py [--keep-after-failure] -- COMMAND [ARGUMENT...]"
            )
            return 2
        keep = True
        argv = argv[1:]
    command = argv[1:]
    if not command:
        _say("no launcher command after --")
        return 2
    status = run(command)
    if status != 0 and keep:
        _say(f"the launcher ended with status {status}: staying, as --keep-after-failure asks")
        while True:
            signal.pause()
    return status


def run(command: list[str]) -> int:
    """Start ``command``, reap until it ends, then end the QEMU it left; returns its exit status."""
    signals = {*_PASSED_ON, signal.SIGCHLD}
    signal.pthread_sigmask(signal.SIG_BLOCK, signals)
    try:
        launcher = os.posix_spawnp(command[0], command, os.environ, setsigmask=[])
    except OSError as error:
        _say(f"the launcher {command[0]} does not start: {error.strerror}")
        return 1
    while True:
        status = _reap(launcher)
        if status is not None:
            break
        received = signal.sigwait(signals)
        if received in _PASSED_ON:
            with contextlib.suppress(ProcessLookupError):
                os.kill(launcher, signal.SIGTERM)
    for qemu in qemu_processes():
        if not end_process(qemu, QEMU_GRACE):
            return 1
    return status


def _reap(launcher: int) -> int | None:
    """Collect every child that has ended; returns the launcher's exit status once it is among them."""
    found = None
    while True:
        try:
            pid, raw = os.waitpid(-1, os.WNOHANG)
        except ChildProcessError:
            return found
        if pid == 0:
            return found
        if pid == launcher:
            code = os.waitstatus_to_exitcode(raw)
            found = code if code >= 0 else 128 - code


def qemu_processes() -> list[int]:
    """Return the ids of the QEMU processes that this process's /proc shows."""
    entries = [entry for entry in os.listdir("/proc") if entry.isdigit()]  # noqa: PTH208 - loads no pathlib
    return [int(entry) for entry in entries if int(entry) != os.getpid() and _is_qemu(entry)]


def _is_qemu(pid: str) -> bool:
    try:
        with open(f"/proc/{pid}/cmdline", "rb") as file:  # noqa: PTH123
            program = file.read(4096).split(b"\0")[0].rpartition(b"/")[2]
    except OSError:
        return False
    return program.startswith(b"qemu-system") or program == b"qemu-kvm"


def end_process(pid: int, grace: float) -> bool:
    """End a process: SIGTERM, and SIGKILL when it lives after ``grace`` seconds; True if SIGTERM
    was enough.
    """
    _say(f"the launcher is gone: ending QEMU (process {pid})")
    with contextlib.suppress(ProcessLookupError):
        os.kill(pid, signal.SIGTERM)
    end = time.monotonic() + grace
    while time.monotonic() < end:
        with contextlib.suppress(ChildProcessError):
            while os.waitpid(-1, os.WNOHANG)[0]:
                pass
        if not _alive(pid):
            return True
        time.sleep(0.05)
    with contextlib.suppress(ProcessLookupError):
        os.kill(pid, signal.SIGKILL)
    return False


def _alive(pid: int) -> bool:
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:  # noqa: PTH123
            return file.read().rpartition(b")")[2].split()[0] != b"Z"
    except (OSError, IndexError):
        return False


def _say(text: str) -> None:
    sys.stderr.write(f"launcher-monitor: {text}\n")
    sys.stderr.flush()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
