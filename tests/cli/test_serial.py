"""Logs followed, guests' output made harmless, and the console over a real socket."""

from __future__ import annotations

import os
import pty
import socket
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kvnode.cli import serial
from kvnode.cli.errors import CliError


def test_follow_takes_up_what_is_added_and_starts_over_when_cut(tmp_path: Path) -> None:
    path = tmp_path / "log"
    path.write_bytes(b"one")
    turns = iter([True, True, True, False])
    stream = serial.follow(lambda: path, lambda: next(turns))
    assert next(stream) == b"one"
    with path.open("ab") as file:
        file.write(b" two")
    assert next(stream) == b" two"
    path.write_bytes(b"new")
    assert list(stream) == [b"new"]


def test_follow_waits_for_a_log_that_is_not_there(tmp_path: Path) -> None:
    turns = iter([True, False])
    assert list(serial.follow(lambda: tmp_path / "absent", lambda: next(turns))) == []


def test_the_last_of_a_log_is_read_where_it_was_moved_to(tmp_path: Path) -> None:
    """The look that finds a VM ended moves its log."""
    live, kept = tmp_path / "virt-serial0-log", tmp_path / "serial.log"
    live.write_bytes(b"one")

    turns = iter([True, False])

    def going() -> bool:
        runs = next(turns)
        if not runs:
            with live.open("ab") as file:
                file.write(b" last")
            live.rename(kept)
        return runs

    find = [live, kept]
    shown = serial.follow(lambda: next((one for one in find if one.is_file()), None), going)
    assert list(shown) == [b"one", b" last"]


@pytest.mark.parametrize(
    ("written", "shown"),
    [
        (b"plain\n\ttext\r\n", b"plain\n\ttext\n"),
        (b"\x1b[31mred\x1b[0m", b"red"),
        (b"\x1b]0;title\x07after", b"after"),
        (b"\x1b[2J\x1b[H\x1bcwiped", b"wiped"),
        (b"a\x00b\x08c\x7fd", b"abcd"),
        ("größe".encode(), "größe".encode()),
        (b"cut \x1b[3", b"cut 3"),
    ],
)
def test_plain(written: bytes, shown: bytes) -> None:
    assert serial.plain(written) == shown


@given(st.binary(max_size=60))
def test_nothing_that_steers_a_terminal_is_left(data: bytes) -> None:
    assert not set(serial.plain(data)) & ({*range(0x20), 0x7F} - {0x09, 0x0A, 0x0D})


@pytest.fixture
def guest(tmp_path: Path) -> Iterator[tuple[Path, socket.socket]]:
    """A console's socket, as QEMU would offer it."""
    path = tmp_path / "console"
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(str(path))
        server.listen(1)
        server.settimeout(60)
        yield path, server


def test_the_console_of_a_machine_that_is_gone(tmp_path: Path) -> None:
    with pytest.raises(CliError, match="the console of demo cannot be connected to"):
        serial.attach(tmp_path / "absent", "demo")


class Terminal:
    """Standard input that is a terminal."""

    def __init__(self, descriptor: int) -> None:
        self.descriptor = descriptor

    def fileno(self) -> int:
        return self.descriptor


@pytest.mark.parametrize("kind", ["terminal", "pipe"])
def test_console_sends_input_and_prints_the_answer(
    guest: tuple[Path, socket.socket],
    monkeypatch: pytest.MonkeyPatch,
    capfdbinary: pytest.CaptureFixture[bytes],
    kind: str,
) -> None:
    path, server = guest
    ours, theirs = pty.openpty() if kind == "terminal" else reversed(os.pipe())
    received = b""

    def answer() -> None:
        nonlocal received
        connection, _ = server.accept()
        with connection:
            connection.settimeout(60)
            received = connection.recv(100)
            connection.sendall(b"hello from the guest\r\n")
            time.sleep(0.2)
            # What is typed after Ctrl-] is not sent.
            os.write(ours, b"bye\x1dnot this" if kind == "terminal" else b"bye")
            if kind == "pipe":
                os.close(ours)
            received += connection.recv(100)
            connection.recv(100)

    helper = threading.Thread(target=answer)
    helper.start()
    monkeypatch.setattr("sys.stdin", Terminal(theirs))
    os.write(ours, b"hi\r")
    serial.attach(path, "demo")
    helper.join(60)
    assert received in (b"hi\rbye", b"hi\nbye")
    captured = capfdbinary.readouterr()
    assert captured.out == b"hello from the guest\r\n"
    assert (b"Ctrl-] leaves" in captured.err) == (kind == "terminal")
    os.close(theirs)
    if kind == "terminal":
        os.close(ours)


def test_console_ends_with_the_machine(
    guest: tuple[Path, socket.socket],
    monkeypatch: pytest.MonkeyPatch,
    capfdbinary: pytest.CaptureFixture[bytes],
) -> None:
    path, server = guest
    theirs, ours = os.pipe()

    def end() -> None:
        connection, _ = server.accept()
        connection.sendall(b"powering off\n")
        connection.close()

    helper = threading.Thread(target=end)
    helper.start()
    monkeypatch.setattr("sys.stdin", Terminal(theirs))
    serial.attach(path, "demo")
    helper.join(60)
    assert capfdbinary.readouterr().out == b"powering off\n"
    os.close(ours)
    os.close(theirs)
