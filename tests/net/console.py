"""The root shell on a demo guest's serial console."""

from __future__ import annotations

import re
import shlex
import socket
from pathlib import Path
from types import TracebackType


class Console:
    """A connection to the serial port, of which there is one at a time."""

    def __init__(self, path: Path, timeout: float = 120.0) -> None:
        """``path`` is the port's socket; ``timeout`` counts for each command's silence."""
        self._socket = socket.socket(socket.AF_UNIX)
        self._socket.settimeout(timeout)
        self._socket.connect(str(path))
        self._count = 0

    def __enter__(self) -> Console:
        self.run("stty -echo; PS1=; PS2=")
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None
    ) -> None:
        self._socket.close()

    def run(self, command: str, *, expected: int = 0) -> str:
        """Run a command, which must end with that status; what it printed."""
        self._count += 1
        # The mark is not in what is typed, which may be echoed.
        begin, end = f"<{self._count}.", f">{self._count}."
        text = f"echo '<'{self._count}.; eval {shlex.quote(command)} 2>&1; echo '>'{self._count}.$?.\n"
        self._socket.sendall(text.encode())
        heard = ""
        while (found := re.search(rf"{re.escape(end)}(\d+)\.", heard)) is None:
            try:
                piece = self._socket.recv(4096)
            except TimeoutError:
                raise AssertionError(f"{command}: does not end: {heard}") from None
            assert piece, f"the console ended during {command!r}: {heard}"
            heard += piece.decode(errors="replace").replace("\r", "")
        output = heard[: found.start()].partition(begin)[2].strip("\n")
        assert int(found[1]) == expected, f"{command}: ended with {found[1]}: {output}"
        return output
