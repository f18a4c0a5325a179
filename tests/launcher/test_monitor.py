"""The monitor as a process: exit status, signals, orphans, what it loads and what it weighs."""

from __future__ import annotations

import re
import shutil
import signal
import socket
import subprocess
import sys
import threading
from pathlib import Path
from types import SimpleNamespace

import pytest

from kvnode.launcher import monitor
from tests.reports import report
from tests.standalone.helpers import wait_until

FILE = Path(monitor.__file__)
COMMAND = [sys.executable, "-I", "-S", str(FILE)]


def start(*arguments: str, prefix: tuple[str, ...] = ()) -> subprocess.Popen[str]:
    """Start the monitor with these arguments."""
    return subprocess.Popen(
        [*prefix, *COMMAND, *arguments], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )


@pytest.mark.parametrize(("script", "status"), [("exit 0", 0), ("exit 7", 7), ("kill -9 $$", 137)])
def test_the_exit_status_is_the_launchers(script: str, status: int) -> None:
    with start("--", "sh", "-c", script) as process:
        process.communicate(timeout=60)
        assert process.returncode == status


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGQUIT])
def test_signals_reach_the_launcher_as_sigterm_each_time(number: signal.Signals) -> None:
    script = "n=0; trap 'n=$((n+1)); echo got $n; [ $n = 2 ] && exit 3' TERM; echo ready; while :; do sleep 0.1; done"
    with start("--", "sh", "-c", script) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
        process.send_signal(number)
        assert process.stdout.readline() == "got 1\n"
        process.send_signal(number)
        assert process.stdout.readline() == "got 2\n"
        assert process.wait(60) == 3


def test_a_launcher_that_has_hardly_begun_does_not_die_of_sigterm() -> None:
    script = (
        "echo begun; sleep 0.7; trap 'exit 4' TERM; i=0; while [ $i -lt 100 ]; do i=$((i+1)); sleep 0.1; done"
    )
    with start("--", "sh", "-c", script) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "begun\n"
        process.send_signal(signal.SIGTERM)
        assert process.wait(60) == 4


def test_one_that_never_handles_it_does() -> None:
    script = f"import sys; sys.path.insert(0, {str(FILE.parent)!r}); import monitor; "
    script += "monitor.DEAF_SECONDS = 0.1; sys.exit(monitor.main(sys.argv[1:]))"
    command = [sys.executable, "-I", "-c", script, "--", "sh", "-c", "echo begun; exec sleep 60"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "begun\n"
        process.send_signal(signal.SIGTERM)
        assert process.wait(20) == 128 + signal.SIGTERM


@pytest.mark.parametrize(
    ("arguments", "status", "complaint"),
    [
        ([], 2, "no launcher command after --"),
        (["--"], 2, "no launcher command after --"),
        (["--colour", "--", "true"], 2, "unknown option --colour"),
        (["--", "/no/such/launcher"], 1, "the launcher /no/such/launcher does not start"),
    ],
)
def test_bad_command_lines_are_one_line(arguments: list[str], status: int, complaint: str) -> None:
    with start(*arguments) as process:
        _, errors = process.communicate(timeout=60)
        assert process.returncode == status
        assert complaint in errors
        assert errors.count("\n") == 1


def test_it_stays_after_a_failure_when_told_to() -> None:
    with start("--keep-after-failure", "--", "false") as process:
        assert process.stderr is not None
        assert any("staying" in line for line in iter(process.stderr.readline, ""))
        assert process.poll() is None
        process.kill()


def test_it_loads_nothing_but_a_little_of_the_standard_library() -> None:
    script = f"import sys; exec(open({str(FILE)!r}).read(), dict(__name__='monitor')); print(*sys.modules)"
    loaded = subprocess.run(
        [sys.executable, "-I", "-S", "-c", script], capture_output=True, text=True, check=True
    ).stdout.split()
    heavy = {"pathlib", "subprocess", "logging", "json", "argparse", "typing", "threading", "dataclasses"}
    assert not heavy & set(loaded)
    assert not [name for name in loaded if name.startswith("kvnode")]


def test_its_resident_size() -> None:
    with start("--", "sleep", "30") as process:
        children = Path(f"/proc/{process.pid}/task/{process.pid}/children")
        wait_until(lambda: children.read_text() != "", 60, "the launcher")
        status = Path(f"/proc/{process.pid}/status").read_text()
        process.terminate()
    resident = int(re.findall(r"VmRSS:\s+(\d+) kB", status)[0])
    assert resident <= 12 * 1024, f"{resident} kB resident; 12 MiB at most"


def test_guests_of_others_are_left_alone(tmp_path: Path) -> None:
    """Without a PID namespace of its own it sees the machine's other guests."""
    qemu = tmp_path / "qemu-system-x86_64"
    shutil.copy(shutil.which("sleep") or "sleep", qemu)
    with subprocess.Popen([str(qemu), "30"]) as other:
        with start("--", "false") as process:
            _, errors = process.communicate(timeout=60)
        assert other.poll() is None
        other.kill()
    assert "ending QEMU" not in errors


@pytest.mark.integration
class TestAsFirstProcess:
    """In a PID namespace of its own, as in a pod: orphans come to it there."""

    PREFIX = ("unshare", "--pid", "--fork", "--mount-proc", "--kill-child")

    @report("B72")
    def test_orphans_are_reaped_at_once(self) -> None:
        # A zombie keeps its directory in /proc: the orphan's is to go without anything else having happened.
        script = "orphan=$(sh -c 'sleep 0.2 >/dev/null & echo $!'); echo $orphan; "
        script += "n=0; while [ -d /proc/$orphan ] && [ $n -lt 600 ]; do sleep 0.05; n=$((n+1)); done; "
        script += "[ -d /proc/$orphan ] || echo done"
        with start("--", "sh", "-c", script, prefix=self.PREFIX) as process:
            output, _ = process.communicate(timeout=60)
        assert re.fullmatch(r"\d+\ndone\n", output), output

    def test_qemu_is_ended_when_the_launcher_died(self, tmp_path: Path) -> None:
        qemu = tmp_path / "qemu-system-x86_64"
        shutil.copy(shutil.which("sleep") or "sleep", qemu)
        # It is found by the program that it runs.
        running = "until grep -q qemu-system /proc/$!/comm; do sleep 0.05; done"
        script = f"{qemu} 61 & {running}; kill -9 $$"
        with start("--", "sh", "-c", script, prefix=self.PREFIX) as process:
            _, errors = process.communicate(timeout=60)
        assert "ending QEMU" in errors
        assert process.returncode == 137, "and not 1, as when QEMU has to be killed"
        assert not any(f"{qemu}\x0061" in command for command in _commands())

    def test_a_qemu_deaf_to_sigterm_is_killed(self, tmp_path: Path) -> None:
        script = tmp_path / "deaf.py"
        script.write_text(
            f"import sys; sys.path.insert(0, {str(FILE.parent)!r})\n"
            "import monitor; monitor.QEMU_GRACE = 0.5; sys.exit(monitor.main(sys.argv[1:]))\n"
        )
        qemu = tmp_path / "qemu-system-x86_64"
        shutil.copy(shutil.which("bash") or "bash", qemu)
        ready = tmp_path / "ready"
        deaf = f"{qemu} -c 'trap \"\" TERM; touch {ready}; while :; do sleep 0.1; done' & "
        deaf += f"until [ -e {ready} ]; do sleep 0.05; done; exit 4"
        command = [*self.PREFIX, sys.executable, "-I", str(script), "--", "sh", "-c", deaf]
        done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
        assert done.returncode == 1, "its own failure: QEMU did not end as asked"


def _commands() -> list[str]:
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                found.append((entry / "cmdline").read_text(errors="replace"))
            except OSError:
                continue
    return found


def test_sockets_of_container_disks_are_removed_and_nothing_else(tmp_path: Path) -> None:
    for name in ("disk_0.sock", "kernel-boot.sock", "disk_0.img", "sock"):
        (tmp_path / name).touch()
    with start("--container-disk-dir", str(tmp_path), "--", "false") as process:
        assert process.wait(60) == 1
    assert sorted(file.name for file in tmp_path.iterdir()) == ["disk_0.img", "sock"]


def test_a_directory_without_container_disks_is_fine(tmp_path: Path) -> None:
    with start("--container-disk-dir", str(tmp_path / "none"), "--", "true") as process:
        _, errors = process.communicate(timeout=60)
    assert (process.returncode, errors) == (0, "")


def test_it_stays_until_it_is_told_to_go_and_reaps_meanwhile() -> None:
    with start("--keep-after-failure", "--", "sh", "-c", "exit 6") as process:
        assert process.stderr is not None
        while "staying" not in process.stderr.readline():
            pass
        process.send_signal(signal.SIGTERM)
        assert process.wait(60) == 6


@report("B72")
def test_the_exit_status_survives_a_storm_of_short_lived_children() -> None:
    script = "i=0; while [ $i -lt 200 ]; do sh -c : & i=$((i+1)); done; exit 9"
    with start("--", "sh", "-c", script) as process:
        assert process.wait(60) == 9


def test_logs_that_nobody_else_shows_are_shown(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "b.log").write_bytes(b"no end of line")
    (tmp_path / "a.log").write_bytes(b"x" * 50 + b"the end\n")
    monkeypatch.setattr(monitor, "LOG_BYTES", 8)
    monitor.show_log(str(tmp_path))
    monitor.show_log(str(tmp_path / "none"))
    lines = capfd.readouterr().err.splitlines()
    assert lines == [
        f"launcher-monitor: log {tmp_path}/a.log:",
        "the end",
        f"launcher-monitor: log {tmp_path}/b.log:",
        " of line",
    ]


class Proxy:
    """What listens on the ports of an Istio sidecar."""

    def __init__(self, server: str, quit_status: str = "200 OK") -> None:
        self.requests: list[str] = []
        self._answers = {"/healthz/ready": f"HTTP/1.1 200 OK\r\nServer: {server}\r\n\r\n"}
        self._answers["/quitquitquit"] = f"HTTP/1.1 {quit_status}\r\n\r\n"
        self._listener = socket.create_server(("localhost", 0))
        self.port = self._listener.getsockname()[1]
        self._thread = threading.Thread(target=self._serve)
        self._thread.start()

    def _serve(self) -> None:
        while True:
            connection, _ = self._listener.accept()
            with connection:
                head = connection.recv(4096).decode()
                if not head:
                    return
                method, path, _ = head.split(" ", 2)
                self.requests.append(f"{method} {path}")
                connection.sendall(self._answers[path].encode())

    def close(self) -> None:
        """Listen no more."""
        socket.create_connection(("localhost", self.port)).close()
        self._thread.join()
        self._listener.close()


@pytest.mark.parametrize(
    ("server", "requests"),
    [("envoy", ["GET /healthz/ready", "POST /quitquitquit"]), ("nginx", ["GET /healthz/ready"])],
)
def test_an_istio_proxy_is_told_to_quit(
    server: str, requests: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    proxy = Proxy(server)
    monkeypatch.setattr(monitor, "_ISTIO_HEALTH", proxy.port)
    monkeypatch.setattr(monitor, "_ISTIO_QUIT", proxy.port)
    monitor.end_istio_proxy()
    proxy.close()
    assert proxy.requests == requests


def test_a_pod_without_a_proxy_ends_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    with socket.create_server(("localhost", 0)) as free:
        port = free.getsockname()[1]
    monkeypatch.setattr(monitor, "_ISTIO_HEALTH", port)
    pauses: list[float] = []
    monkeypatch.setattr(monitor, "time", SimpleNamespace(sleep=pauses.append))
    monitor.end_istio_proxy()
    assert sum(pauses) < 0.5
