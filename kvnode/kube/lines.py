"""Split a stream of bytes into lines of any length."""

from __future__ import annotations

MAXIMUM = 16 << 20
"""An object in etcd has at most 1.5 MiB; escapes may make it some times longer."""


class LineSplitter:
    """Collects what arrives and gives out whole lines.

    A long line that arrives in many pieces is joined once, so that time grows with its length alone.
    """

    def __init__(self, maximum: int = MAXIMUM) -> None:
        """`maximum` is the length in bytes of the longest line that is put up with."""
        self._maximum = maximum
        self._pieces: list[bytes] = []
        self._length = 0

    def feed(self, data: bytes) -> list[bytes]:
        """The lines that ``data`` completes, without their ends; empty lines are left out.

        Raises:
            ValueError: a line is longer than the maximum.
        """
        lines = data.split(b"\n")
        rest = lines.pop()
        if lines:
            self._pieces.append(lines[0])
            lines[0] = b"".join(self._pieces)
            self._pieces.clear()
            self._length = 0
        if rest:
            self._pieces.append(rest)
            self._length += len(rest)
        if self._length > self._maximum or any(len(line) > self._maximum for line in lines):
            raise ValueError(f"a line of more than {self._maximum} bytes")
        return [line for line in lines if line.strip()]

    @property
    def pending(self) -> int:
        """Bytes of the line that is not whole yet."""
        return self._length
