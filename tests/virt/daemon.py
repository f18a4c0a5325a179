"""A libvirt daemon for tests, in mount and PID namespaces of its own: many may run side by side."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import tempfile
from pathlib import Path

import libvirt

import kvnode
from kvnode.standalone import records
from kvnode.standalone.sandbox import Plan
from kvnode.virt.connection import Connection, Versions
from tests.standalone.helpers import wait_until

ROOT = Path(__file__).resolve().parents[2]
MONITOR = Path(kvnode.__file__).parent / "launcher/monitor.py"
CONNECT_SECONDS = 120.0


class LibvirtHost:
    """Real libvirt and QEMU, seeing a directory where a launcher pod's /run would be."""

    def __init__(self) -> None:
        """Start the daemons and connect to them; :meth:`close` ends them and every guest."""
        self.directory = Path(tempfile.mkdtemp(prefix="kvnode-"))  # short: sockets lie in it
        self.run = self.directory / "run"
        """What the daemons and guests see as /run and /var/run."""
        for part in ("run", "etc", "lib", "log", "cache"):
            (self.directory / part).mkdir()
        command = (
            sys.executable,
            "-I",
            "-S",
            str(MONITOR),
            "--",
            sys.executable,
            "-P",
            "-m",
            "tests.virt.daemon_main",
        )
        plan = Plan(str(self.directory), str(self.directory / "cache"), (), False, command)
        self._log = (self.directory / "daemons.log").open("wb")
        self._starter = subprocess.Popen(
            [sys.executable, "-P", "-m", "kvnode.standalone.sandbox", plan.to_json()],
            stdin=subprocess.PIPE,
            stdout=self._log,
            stderr=subprocess.STDOUT,
            cwd="/",
            env={**os.environ, "PYTHONPATH": str(ROOT)},
        )
        self.connection = Connection("", lambda *_: None, lambda: None)
        socket = "virtqemud-sock" if shutil.which("virtqemud", path="/usr/sbin:/usr/bin") else "libvirt-sock"
        self.connection.uri = f"qemu+unix:///system?socket={self.run}/libvirt/{socket}"
        try:
            assert self._starter.wait(CONNECT_SECONDS) == 0, self.log()
            self.connection.open(CONNECT_SECONDS)
        except BaseException:
            self.close()
            raise

    @property
    def raw(self) -> libvirt.virConnect:
        """libvirt's own connection."""
        return self.connection.raw

    @property
    def versions(self) -> Versions:
        """What is installed."""
        return self.connection.versions()

    def path(self, inside: str) -> Path:
        """Where a path that the daemons and guests see under /run lies on this machine."""
        return self.run / inside.removeprefix("/var").removeprefix("/run/")

    def log(self) -> str:
        """What the daemons said."""
        return (self.directory / "daemons.log").read_text(errors="replace")

    def close(self) -> None:
        """End every process in the namespaces and remove the directory."""
        self.connection.close()
        process = records.read_process(self.directory / records.LAUNCHER_PID)
        if process is not None:
            records.send_signal(process, signal.SIGKILL)
            wait_until(lambda: not records.alive(process), 120, "the end of the daemons")
        if self._starter.stdin is not None:
            self._starter.stdin.close()
        self._starter.wait(120)
        self._log.close()
        shutil.rmtree(self.directory, ignore_errors=True)
