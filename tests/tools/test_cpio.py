"""The archive is one that a reader of the format takes apart again into the same files."""

from __future__ import annotations

import stat
from collections.abc import Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tools.guest.cpio import Archive


def read(data: bytes) -> Iterator[tuple[str, int, bytes]]:
    """Name, mode and content of each entry; written from the format's description alone."""
    at = 0
    while True:
        assert data[at : at + 6] == b"070701"
        fields = [int(data[at + 6 + 8 * i : at + 14 + 8 * i], 16) for i in range(13)]
        mode, size, name_size = fields[1], fields[6], fields[11]
        name_at = at + 110
        name = data[name_at : name_at + name_size - 1].decode()
        content_at = (name_at + name_size + 3) // 4 * 4
        if name == "TRAILER!!!":
            return
        yield name, mode, data[content_at : content_at + size]
        at = (content_at + size + 3) // 4 * 4


def test_directories_come_before_what_is_in_them() -> None:
    archive = Archive()
    archive.file("usr/sbin/tool", b"#!/bin/sh\n", 0o755)
    entries = list(read(archive.to_bytes()))
    assert [name for name, _, _ in entries] == ["usr", "usr/sbin", "usr/sbin/tool"]
    assert all(stat.S_ISDIR(mode) for _, mode, _ in entries[:2])
    assert entries[2][1:] == (stat.S_IFREG | 0o755, b"#!/bin/sh\n")


@given(st.dictionaries(st.from_regex(r"[a-z]{1,9}", fullmatch=True), st.binary(max_size=40)))
def test_files_of_any_size_survive(files: dict[str, bytes]) -> None:
    archive = Archive()
    for name, data in files.items():
        archive.file(name, data)
    written = archive.to_bytes()
    assert {name: data for name, _, data in read(written)} == files
    assert len(written) % 4 == 0


def test_a_device_has_its_numbers() -> None:
    archive = Archive()
    archive.device("dev/console", 5, 1)
    header = archive.to_bytes().split(b"070701")[2]
    assert (int(header[72:80], 16), int(header[80:88], 16)) == (5, 1)


def test_a_path_is_taken_once() -> None:
    archive = Archive()
    archive.file("init", b"1")
    with pytest.raises(ValueError, match="init is in the archive twice"):
        archive.file("init", b"2")
