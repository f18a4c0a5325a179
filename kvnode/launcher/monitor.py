"""First process of a launcher's container or of a VM's namespaces: starts the launcher, reaps every orphan,
ends the VM when the launcher dies.

Run as a file (``python -I -S monitor.py [OPTION...] -- LAUNCHER ARGUMENT...``) so that nothing but the standard
library is loaded, and little of it: this process exists once a VM. What it does is fixed by
``cmd/virt-launcher-monitor/virt-launcher-monitor.go``:

* SIGINT, SIGTERM and SIGQUIT reach the launcher as SIGTERM, each time they come, as soon as it can take it: one that
  has hardly begun would die of it, and a VM that was stopped so early would look like one that failed;
* QEMU, left behind by a launcher that ended, gets SIGTERM, ten seconds, then SIGKILL;
* logs that nobody else shows are written to this one's, an Istio proxy beside it is told to quit, and the sockets
  that keep container disks running are removed;
* the exit status is the launcher's (128 + the signal's number, when a signal ended it), or 1 on an error of
  its own.

Options: ``--container-disk-dir DIRECTORY`` for those sockets; ``--pod`` for what is done in a pod alone (logs,
Istio); ``--keep-after-failure`` to stay, for somebody to look around, until SIGTERM comes.
"""

import contextlib
import os
import signal
import sys
import time

#: Seconds between SIGTERM and SIGKILL for a QEMU without a launcher.
QEMU_GRACE = 10.0
#: Seconds for which a launcher that does not handle SIGTERM yet is spared it.
DEAF_SECONDS = 5.0

#: Logs that are shown when the launcher has ended: a file, or a directory of files.
LOGS = (
    "/var/run/kubevirt/passt.log",
    "/run/kubevirt-private/libvirt/qemu/log",  # QEMU's, without root
    "/var/log/libvirt/qemu",  # QEMU's, as root
)
#: Most that is shown of one log: its end, in bytes.
LOG_BYTES = 1 << 20

# Ports of Istio's sidecar: its health, and the one that takes the request to quit.
_ISTIO_HEALTH, _ISTIO_QUIT = 15021, 15020
_HTTP_SECONDS = 2.0

_PASSED_ON = (signal.SIGINT, signal.SIGTERM, signal.SIGQUIT)
_WATCHED = frozenset({*_PASSED_ON, signal.SIGCHLD})
_USAGE = "monitor.py [--pod] [--container-disk-dir DIRECTORY] [--keep-after-failure] -- COMMAND [ARGUMENT...]"


def main(argv: list[str]) -> int:
    """Run the launcher to its end and return the exit status."""
    keep = pod = False
    disks = ""
    while argv and argv[0] != "--":
        option, argv = argv[0], argv[1:]
        if option == "--keep-after-failure":
            keep = True
        elif option == "--pod":
            pod = True
        elif option == "--container-disk-dir" and argv and argv[0] != "--":
            disks, argv = argv[0], argv[1:]
        else:
            _say(f"unknown option {option}; usage: {_USAGE}")
            return 2
    command = argv[1:]
    if not command:
        _say("no launcher command after --")
        return 2
    signal.pthread_sigmask(signal.SIG_BLOCK, _WATCHED)
    status = run(command, show_logs=pod)
    if pod:
        end_istio_proxy()
    if disks:
        remove_sockets(disks)
    if status != 0 and keep:
        _say(f"the launcher ended with status {status}: staying, as --keep-after-failure asks")
        _stay()
    return status


def run(command: list[str], *, show_logs: bool = False) -> int:
    """Start ``command``, reap until it ends, then end the QEMU it left; returns its exit status."""
    try:
        launcher = os.posix_spawnp(command[0], command, os.environ, setsigmask=[])
    except OSError as error:
        _say(f"the launcher {command[0]} does not start: {error.strerror}")
        return 1
    deaf_until = time.monotonic() + DEAF_SECONDS
    stop = False
    while True:
        status = _reap(launcher)
        if status is not None:
            break
        if stop and (time.monotonic() >= deaf_until or _handles_sigterm(launcher)):
            stop = False
            with contextlib.suppress(ProcessLookupError):
                os.kill(launcher, signal.SIGTERM)
        received = signal.sigtimedwait(_WATCHED, 0.02) if stop else signal.sigwaitinfo(_WATCHED)
        stop = stop or (received is not None and received.si_signo in _PASSED_ON)
    if status != 0:
        _say(f"the launcher ended with status {status}")
    if show_logs:
        for path in LOGS:
            show_log(path)
    for qemu in qemu_processes():
        if not end_process(qemu, QEMU_GRACE):
            return 1
    return status


def _handles_sigterm(pid: int) -> bool:
    """Tell whether a process has a handler for SIGTERM."""
    try:
        with open(f"/proc/{pid}/status", "rb") as file:  # noqa: PTH123
            caught = file.read().partition(b"\nSigCgt:")[2].split(None, 1)[0]
        return bool(int(caught, 16) >> (signal.SIGTERM - 1) & 1)
    except (OSError, IndexError, ValueError):
        return False


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


def _stay() -> None:
    """Reap orphans until a signal asks for the end."""
    while signal.sigwait(_WATCHED) not in _PASSED_ON:
        _reap(0)


def qemu_processes() -> list[int]:
    """Return the ids of the QEMU processes that this process's /proc shows and that descend from this process.

    An orphan's parent is the first process of the PID namespace: this one, in a pod. Run anywhere else, it must not
    end the machine's other guests.
    """
    entries = [entry for entry in os.listdir("/proc") if entry.isdigit()]  # noqa: PTH208 - loads no pathlib
    return [int(entry) for entry in entries if _is_qemu(entry) and _is_ours(entry)]


def _is_ours(pid: str) -> bool:
    """Tell whether a process descends from this one."""
    me = str(os.getpid())
    while pid not in {"0", "1", me}:
        try:
            with open(f"/proc/{pid}/stat", "rb") as file:  # noqa: PTH123
                pid = file.read().rpartition(b")")[2].split()[1].decode()
        except (OSError, IndexError):
            return False
    return pid == me


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
        _reap(0)
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


def show_log(path: str) -> None:
    """Write the end of a log, or of each log in a directory, to standard error; nothing when there is none."""
    if os.path.isdir(path):  # noqa: PTH112
        for name in sorted(os.listdir(path)):  # noqa: PTH208
            show_log(f"{path}/{name}")
        return
    try:
        with open(path, "rb") as file:  # noqa: PTH123
            size = file.seek(0, os.SEEK_END)
            file.seek(max(0, size - LOG_BYTES))
            content = file.read(LOG_BYTES)
    except OSError:
        return
    _say(f"log {path}:")
    sys.stderr.buffer.write(content if content.endswith(b"\n") else content + b"\n")
    sys.stderr.flush()


def remove_sockets(directory: str) -> None:
    """Remove the ``*.sock`` files of a directory: with its socket, a container disk's program ends."""
    try:
        names = [name for name in os.listdir(directory) if name.endswith(".sock")]  # noqa: PTH208
        for name in names:
            with contextlib.suppress(FileNotFoundError):
                os.unlink(f"{directory}/{name}")  # noqa: PTH108
    except OSError as error:
        if not isinstance(error, FileNotFoundError):
            _say(f"the sockets of container disks in {directory} cannot be removed: {error.strerror}")


def end_istio_proxy() -> None:
    """Tell an Istio proxy in the same pod to quit, which would keep the pod running; nothing without one.

    Where nothing listens on its port, nothing is there: that is found out at once, and tried once more.
    """
    answer = _request("GET", _ISTIO_HEALTH, "/healthz/ready", tries=2)
    if not any(line.lower().replace(" ", "") == "server:envoy" for line in answer):
        return
    answer = _request("POST", _ISTIO_QUIT, "/quitquitquit", tries=4)
    if not answer or " 200" not in answer[0]:
        _say(f"the Istio proxy does not quit: {answer[0] if answer else 'no answer'}")


def _request(method: str, port: int, path: str, tries: int) -> list[str]:
    """Return the lines of an HTTP answer's head from this pod; none when there was no answer."""
    import socket  # noqa: PLC0415 - wanted once, at the end

    request = f"{method} {path} HTTP/1.1\r\nHost: localhost\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"
    pause = 0.05
    for _ in range(tries):
        try:
            with socket.create_connection(("localhost", port), _HTTP_SECONDS) as connection:
                connection.sendall(request.encode())
                head = b""
                while b"\r\n\r\n" not in head and len(head) < 1 << 16 and (part := connection.recv(4096)):
                    head += part
        except TimeoutError:
            return []
        except OSError:
            head = b""
        lines = head.decode("latin-1").partition("\r\n\r\n")[0].split("\r\n")
        if head and " 503" not in lines[0]:
            return lines
        time.sleep(pause)
        pause *= 5
    return []


def _say(text: str) -> None:
    sys.stderr.write(f"launcher-monitor: {text}\n")
    sys.stderr.flush()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
