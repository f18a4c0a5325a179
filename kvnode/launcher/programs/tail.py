"""``virt-tail``: writes a log's lines to standard output as they come, whatever becomes of the file.

The file may come later, be cut, or be replaced (virtlogd rolls it over): what is left of the old one is written
before the new one is begun. Only whole lines are written, as ``cmd/virt-tail/main.go`` has it; a guest that never
ends its line is cut at 64 KiB, so that this process stays small.
"""

from __future__ import annotations

import os
import signal
import sys
import time
from typing import BinaryIO

_LOOK_SECONDS = 0.25
_READ = 1 << 16


class Tail:
    """One log that is followed."""

    def __init__(self, path: str, out: BinaryIO) -> None:
        """Follow ``path``, which need not be there yet, from its beginning."""
        self._path = path
        self._out = out
        self._file: BinaryIO | None = None
        self._rest = b""

    def step(self) -> bool:
        """Write what is new; True when there may be more at once. Raises OSError when nobody reads any more."""
        if self._file is None:
            self._file = self._open()
            if self._file is None:
                return False
        data = self._file.read(_READ)
        if data:
            self._write(data)
            return True
        return self._follow_name(self._file)

    def close(self) -> None:
        """Let go of the file."""
        if self._file is not None:
            self._file.close()
            self._file = None

    def _open(self) -> BinaryIO | None:
        try:
            return open(self._path, "rb", buffering=0)  # noqa: PTH123 - kept open
        except OSError:
            return None

    def _follow_name(self, file: BinaryIO) -> bool:
        """At the end of the file: look whether it was cut, or whether its name is another's now."""
        opened = os.fstat(file.fileno())
        if opened.st_size < file.tell():
            file.seek(0)
            self._rest = b""
            return True
        try:
            named = os.stat(self._path)  # noqa: PTH116
        except OSError:
            return False
        if (named.st_dev, named.st_ino) == (opened.st_dev, opened.st_ino):
            return False
        self._write(file.read(_READ) or b"")
        if self._rest:  # the old file's last line will get no end
            self._write(b"\n")
        self.close()
        return True

    def _write(self, data: bytes) -> None:
        whole, newline, self._rest = (self._rest + data).rpartition(b"\n")
        if len(self._rest) >= _READ:
            whole, newline, self._rest = whole + newline + self._rest, b"\n", b""
        self._out.write(whole + newline)
        self._out.flush()


def main() -> int:
    """Follow the file that ``--logfile`` names until SIGTERM or SIGINT comes."""
    path = log_file(sys.argv[1:])
    if not path:
        sys.stderr.write("virt-tail: --logfile must name a file\n")
        return 1
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, _leave)
    tail = Tail(path, sys.stdout.buffer)
    try:
        while True:
            if not tail.step():
                time.sleep(_LOOK_SECONDS)
    except OSError as error:
        sys.stderr.write(f"virt-tail: {error.strerror}\n")
        return 1


def log_file(arguments: list[str]) -> str:
    """The value of ``--logfile``; "" without one. Other flags are for other programs."""
    for position, word in enumerate(arguments):
        if word.startswith("--logfile="):
            return word.partition("=")[2]
        if word == "--logfile":
            return arguments[position + 1] if position + 1 < len(arguments) else ""
    return ""


def _leave(_number: int, _frame: object) -> None:
    os._exit(0)


if __name__ == "__main__":
    sys.exit(main())
