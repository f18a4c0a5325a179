"""Network namespaces for tests, joined by pairs of interfaces. They are gone when their last process is."""

from __future__ import annotations

import subprocess
from collections.abc import Sequence
from types import TracebackType
from typing import Any


class Namespace:
    """A network namespace, held by a process that does nothing."""

    def __init__(self) -> None:
        """Make it, with its loopback up."""
        command = ["unshare", "--net", "--", "sh", "-c", "echo; exec cat"]
        self._holder = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        assert self._holder.stdout is not None
        assert self._holder.stdout.readline() == b"\n", "unshare made no namespace"
        self.run("ip", "link", "set", "lo", "up")

    def __enter__(self) -> Namespace:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None
    ) -> None:
        self._holder.communicate()

    @property
    def pid(self) -> int:
        """The holder's process id."""
        return self._holder.pid

    def command(self, *arguments: str) -> list[str]:
        """The command line that runs ``arguments`` in here."""
        return ["nsenter", f"--net=/proc/{self.pid}/ns/net", "--", *arguments]

    def run(self, *arguments: str, timeout: float = 180.0, env: dict[str, str] | None = None) -> str:
        """Run a program to its end; its output."""
        done = subprocess.run(
            self.command(*arguments), capture_output=True, text=True, timeout=timeout, check=False, env=env
        )
        assert done.returncode == 0, f"{arguments}: {done.stderr}{done.stdout}"
        return done.stdout

    def start(self, arguments: Sequence[str], **options: Any) -> subprocess.Popen[str]:
        """Start a program in here; the caller ends it."""
        return subprocess.Popen(self.command(*arguments), text=True, **options)
