"""virt-tail: whole lines, once each, whatever becomes of the file."""

from __future__ import annotations

import io
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from kvnode.launcher.programs import tail
from kvnode.launcher.programs.tail import Tail


@pytest.fixture
def log(tmp_path: Path) -> Path:
    """Where the log will be."""
    return tmp_path / "virt-serial0-log"


class Followed:
    """A tail, and what it has written."""

    def __init__(self, log: Path) -> None:
        self.out = io.BytesIO()
        self.tail = Tail(str(log), self.out)

    def new(self) -> bytes:
        """What it writes now."""
        before = len(self.out.getvalue())
        while self.tail.step():
            pass
        return self.out.getvalue()[before:]


def test_lines_are_written_when_they_are_whole(log: Path) -> None:
    followed = Followed(log)
    assert followed.new() == b"", "the file need not be there"
    log.write_bytes(b"one\ntw")
    assert followed.new() == b"one\n"
    with log.open("ab") as file:
        file.write(b"o\nthree\n")
    assert followed.new() == b"two\nthree\n"
    followed.tail.close()


def test_a_file_that_is_rolled_over_is_read_to_its_end_first(log: Path) -> None:
    followed = Followed(log)
    log.write_bytes(b"a\n")
    assert followed.new() == b"a\n"
    with log.open("ab") as file:
        file.write(b"b\nend of old")
        log.rename(log.with_suffix(".0"))
        file.write(b" file")
    log.write_bytes(b"c\n")
    assert followed.new() == b"b\nend of old file\nc\n"
    followed.tail.close()


def test_a_file_that_is_cut_is_read_from_its_beginning(log: Path) -> None:
    followed = Followed(log)
    log.write_bytes(b"first\nand more")
    assert followed.new() == b"first\n"
    log.write_bytes(b"new\n")
    assert followed.new() == b"new\n"
    followed.tail.close()


def test_a_file_that_is_away_for_a_while(log: Path) -> None:
    followed = Followed(log)
    log.write_bytes(b"1\n")
    assert followed.new() == b"1\n"
    log.unlink()
    assert followed.new() == b""
    log.write_bytes(b"2\n")
    assert followed.new() == b"2\n"
    followed.tail.close()


def test_a_line_without_end_is_cut(log: Path) -> None:
    followed = Followed(log)
    log.write_bytes(b"x" * 200_000)
    written = followed.new()
    assert written.count(b"\n") == 3
    assert len(written) - 3 <= 200_000
    followed.tail.close()


@pytest.mark.parametrize(
    ("arguments", "file"),
    [
        (["--logfile", "a"], "a"),
        (["--logfile=b", "-v", "3"], "b"),
        (["--other", "x", "--logfile", "c"], "c"),
        ([], ""),
        (["--logfile"], ""),
    ],
)
def test_the_flag(arguments: list[str], file: str) -> None:
    assert tail.log_file(arguments) == file


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_as_a_program(log: Path, number: signal.Signals) -> None:
    log.write_bytes(b"hello\n")
    command = [sys.executable, "-m", "kvnode.launcher.programs.tail", "--logfile", str(log)]
    with subprocess.Popen(command, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"hello\n"
        process.send_signal(number)
        assert process.wait(60) == 0


def test_without_a_file_it_fails() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "kvnode.launcher.programs.tail"], capture_output=True, text=True, check=False
    )
    assert done.returncode == 1
    assert done.stderr == "virt-tail: --logfile must name a file\n"
