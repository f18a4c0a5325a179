"""``kvnode controller`` in processes of its own."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

TIMES = (
    *("--leader-elect-lease-duration", "6"),
    *("--leader-elect-renew-deadline", "4.5"),
    *("--leader-elect-retry-period", "0.5"),
)
"""An election of which a test need not wait long, and that a busy machine does not lose."""
DURATION = 6.0


@contextmanager
def controller(
    kubeconfig: Path, log: Path, *arguments: str, namespace: str, watch: str | None = None
) -> Iterator[subprocess.Popen[bytes]]:
    """A controller whose Lease is in a namespace; it looks after that one, or after another ("": all).

    It is killed at the end if it lives.
    """
    command = [sys.executable, "-m", "kvnode.cli", "controller", "--kubeconfig", str(kubeconfig)]
    watched = namespace if watch is None else watch
    command += ["--namespace", namespace, "--watch-namespace", watched, *arguments]
    environment = {name: value for name, value in os.environ.items() if not name.startswith("KUBE")}
    with log.open("wb") as file:
        process = subprocess.Popen(command, stderr=file, env=environment, start_new_session=True)
    try:
        yield process
    finally:
        with contextlib.suppress(ProcessLookupError):
            process.send_signal(signal.SIGCONT)
        process.kill()
        process.wait()
