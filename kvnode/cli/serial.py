"""A VM's serial console: its log followed, and its socket joined to this terminal."""

from __future__ import annotations

import contextlib
import os
import re
import select
import socket
import sys
import termios
import time
import tty
from collections.abc import Callable, Iterator
from pathlib import Path

from kvnode.cli import exitcodes
from kvnode.cli.errors import CliError

LEAVE = 0x1D
"""Ctrl-], which leaves the console."""

POLL = 0.2
"""Seconds between looks at a log that is followed."""

DRAIN = 0.5
"""Seconds of silence after which a console whose input has ended is left."""

_ESCAPES = re.compile(
    rb"\x1b\[[0-?]*[ -/]*[@-~]"  # cursor and colours
    rb"|\x1b\][^\x07\x1b]*(?:\x07|\x1b\\)"  # titles and the like
    rb"|\x1b[ -/]*[0-~]"
    rb"|[\x00-\x08\x0b\x0c\x0e-\x1a\x1c-\x1f\x7f]"
    rb"|\r(?=\n)"
)


def follow(find: Callable[[], Path | None], going: Callable[[], bool], *, start: int = 0) -> Iterator[bytes]:
    """The log's content from byte ``start`` on and what gets added, until ``going`` says no and all is read.

    ``find`` tells each time where the log is: that of a VM that ends is moved, by whoever looks at the VM first. One
    that is not there yet (None) is waited for; one that shrinks is read from its start.
    """
    position = start
    while True:
        last = not going()
        data = b""
        path = find()
        with contextlib.suppress(FileNotFoundError), contextlib.ExitStack() as opened:
            if path is not None:
                file = opened.enter_context(path.open("rb"))
                if os.fstat(file.fileno()).st_size < position:
                    position = 0
                file.seek(position)
                data = file.read()
        position += len(data)
        if data:
            yield data
        if last:
            return
        time.sleep(POLL)


def plain(data: bytes) -> bytes:
    """What a guest wrote without what would steer a terminal: escape sequences and control characters."""
    return _ESCAPES.sub(b"", data).replace(b"\x1b", b"")


def write_out(data: bytes) -> None:
    """Write bytes to standard output at once."""
    sys.stdout.buffer.write(data)
    sys.stdout.buffer.flush()


def wait_for_text(
    find: Callable[[], Path | None], text: str, going: Callable[[], bool], timeout: float
) -> None:
    """Return when the log that ``find`` tells of holds ``text``.

    Raises:
        CliError: time is up, or the VM ended without having written it.
    """
    deadline = time.monotonic() + timeout
    wanted = text.encode()
    tail = b""
    for data in follow(find, lambda: going() and time.monotonic() < deadline):
        seen = tail + data
        if wanted in seen:
            return
        tail = seen[-len(wanted) :]
    why = "the machine ended" if time.monotonic() < deadline else f"{timeout:g} seconds went by"
    raise CliError(f"{why} before {text!r} came on the serial console")


def attach(path: Path, name: str) -> None:
    """Join this terminal to the console's socket until Ctrl-], the end of the input, or the end of the VM.

    Raises:
        CliError: the socket cannot be connected to.
    """
    connection = socket.socket(socket.AF_UNIX)
    try:
        connection.connect(str(path))
    except OSError as error:
        connection.close()
        message = f"the console of {name} cannot be connected to: {error.strerror}"
        raise CliError(message, code=exitcodes.FAILED) from None
    source = sys.stdin.fileno()
    terminal = os.isatty(source)
    if terminal:
        sys.stderr.write(f"Connected to {name}; Ctrl-] leaves, Enter wakes a quiet console.\n")
    with connection, _raw(source) if terminal else contextlib.nullcontext():
        _pump(connection, source, terminal)
    if terminal:
        sys.stderr.write(f"\nLeft the console of {name}.\n")


@contextlib.contextmanager
def _raw(source: int) -> Iterator[None]:
    saved = termios.tcgetattr(source)
    try:
        # Not TCSAFLUSH, the default: what was typed ahead is meant for the guest.
        tty.setraw(source, termios.TCSADRAIN)
        yield
    finally:
        termios.tcsetattr(source, termios.TCSADRAIN, saved)


def _pump(connection: socket.socket, source: int, terminal: bool) -> None:
    reading: list[socket.socket | int] = [connection, source]
    while True:
        ready, _, _ = select.select(reading, [], [], None if source in reading else DRAIN)
        if not ready:
            return
        if source in ready:
            data = os.read(source, 4096)
            before, leave, _ = data.partition(bytes([LEAVE])) if terminal else (data, b"", b"")
            with contextlib.suppress(BrokenPipeError):
                connection.sendall(before)
            if leave:
                return
            if not data:
                reading.remove(source)
        if connection in ready:
            try:
                data = connection.recv(65536)
            except ConnectionResetError:
                return
            if not data:
                return
            write_out(data)
