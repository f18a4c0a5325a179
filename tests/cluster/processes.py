"""Start programs so that none outlives the process that started them."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from collections.abc import Sequence
from pathlib import Path

from tests.cluster.errors import ClusterError

# When its parent's thread ends, for whatever reason, the kernel kills the program.
BOUND = ("setpriv", "--pdeathsig", "KILL", "--")


class Processes:
    """Named children with a log each. To be used by one thread, which must live as long as they shall."""

    def __init__(self, logs: Path) -> None:
        """Logs go to ``logs``/NAME.log."""
        self.logs = logs
        logs.mkdir(parents=True, exist_ok=True)
        self.running: dict[str, subprocess.Popen[bytes]] = {}

    def start(
        self,
        name: str,
        argv: Sequence[str | Path],
        environment: dict[str, str] | None = None,
        fds: tuple[int, ...] = (),
    ) -> None:
        """Start one; ``environment`` is added to ours, ``fds`` are inherited."""
        with (self.logs / f"{name}.log").open("ab") as log:
            self.running[name] = subprocess.Popen(
                [*BOUND, *map(str, argv)],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                env={**os.environ, **(environment or {})},
                pass_fds=fds,
            )

    def check(self) -> None:
        """Raise ClusterError if a child has ended."""
        for name, process in self.running.items():
            if process.poll() is not None:
                raise ClusterError(f"{name} ended with code {process.returncode}: {self.tail(name)}")

    def tail(self, name: str) -> str:
        """The last line that a child wrote that says something."""
        text = (self.logs / f"{name}.log").read_text(errors="replace")
        lines = [line.strip() for line in text.splitlines() if line.strip()]
        telling = [
            line for line in lines if line.startswith(("E", "F", "error", "Error", '{"level":"fatal"'))
        ]
        return (telling or lines or ["it wrote nothing"])[-1][:400]

    def stop(self, grace: float = 0.0) -> None:
        """End all: SIGTERM and ``grace`` seconds when that is more than none, then SIGKILL."""
        if grace:
            for process in self.running.values():
                if process.poll() is None:
                    process.send_signal(signal.SIGTERM)
            deadline = time.monotonic() + grace
            while time.monotonic() < deadline and any(p.poll() is None for p in self.running.values()):
                time.sleep(0.02)
        for process in self.running.values():
            if process.poll() is None:
                process.kill()
        for process in self.running.values():
            process.wait()
        self.running.clear()
