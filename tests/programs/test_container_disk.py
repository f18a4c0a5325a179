"""container-disk: a static program that lives as long as its socket's file."""

from __future__ import annotations

import shutil
import signal
import socket
import struct
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.standalone.helpers import wait_until

ROOT = Path(__file__).parents[2]
PT_INTERP = 3
PROGRAM = ROOT / "build/container-disk"


@pytest.fixture(scope="module", autouse=True)
def built() -> None:
    """The program, as make builds it."""
    subprocess.run(["make", "-s", "build/container-disk"], cwd=ROOT, check=True, capture_output=True)


@pytest.fixture
def directory() -> Iterator[Path]:
    """A directory with a short path."""
    path = Path(tempfile.mkdtemp(prefix="kvn-"))
    yield path
    shutil.rmtree(path)


def start(path: Path) -> subprocess.Popen[str]:
    """Start the program and wait until it listens."""
    process = subprocess.Popen([PROGRAM, "--copy-path", str(path)], stderr=subprocess.PIPE, text=True)
    wait_until(lambda: reachable(path), 60, "the socket")
    return process


def reachable(path: Path) -> bool:
    """Whether somebody accepts a connection, and closes it at once."""
    with socket.socket(socket.AF_UNIX) as client:
        client.settimeout(60)
        try:
            client.connect(f"{path}.sock")
            return client.recv(1) == b""
        except OSError:
            return False


def test_it_needs_nothing_of_the_image_that_it_runs_in() -> None:
    content = PROGRAM.read_bytes()
    assert content.startswith(b"\x7fELF")
    assert PT_INTERP not in segment_types(content), "no loader of shared libraries is asked for"
    assert len(content) < 1_500_000


def segment_types(elf: bytes) -> list[int]:
    """The types of a 64-bit ELF file's segments: elf(5)."""
    (start,) = struct.unpack_from("<Q", elf, 32)
    size, count = struct.unpack_from("<HH", elf, 54)
    return [struct.unpack_from("<I", elf, start + i * size)[0] for i in range(count)]


def test_it_ends_when_its_socket_is_removed(directory: Path) -> None:
    path = directory / "made/disk_0"
    with start(path) as process:
        Path(f"{path}.sock").unlink()
        assert process.wait(60) == 0


def test_sigterm_removes_the_socket(directory: Path) -> None:
    path = directory / "disk_0"
    with start(path) as process:
        process.send_signal(signal.SIGTERM)
        assert process.wait(60) == 0
    assert list(directory.iterdir()) == []


def test_it_takes_the_place_of_one_that_was_killed_and_of_no_other(directory: Path) -> None:
    path = directory / "disk_0"
    with start(path) as killed:
        killed.kill()
    with start(path) as again:
        second = subprocess.run(
            [PROGRAM, "--copy-path", path], capture_output=True, text=True, check=False, timeout=60
        )
        assert second.returncode == 1
        assert "cannot bind" in second.stderr
        assert reachable(path)
        again.kill()


def test_many_callers_do_not_disturb_it(directory: Path) -> None:
    path = directory / "disk_0"
    with start(path) as process:
        assert all(reachable(path) for _ in range(200))
        assert process.poll() is None
        process.kill()


@pytest.mark.parametrize(
    ("arguments", "status"),
    [
        (["--no-op"], 0),
        (["--copy-path", "/tmp/x", "--no-op"], 0),
        ([], 1),
        (["--copy-path"], 1),
        (["--copy-path", ""], 1),
        (["--copy-path", "/tmp/" + "x" * 100], 1),
        (["--colour"], 1),
    ],
)
def test_command_lines(arguments: list[str], status: int) -> None:
    done = subprocess.run([PROGRAM, *arguments], capture_output=True, text=True, check=False, timeout=60)
    assert done.returncode == status
    assert done.stderr.count("\n") == status
