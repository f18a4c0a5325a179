"""Small files that are whole or absent, and processes that are never mistaken."""

from __future__ import annotations

import dataclasses
import os
import signal
import subprocess
from pathlib import Path

import pytest

from kvnode.standalone import records


def test_a_file_is_replaced_whole_and_nothing_stays_beside_it(tmp_path: Path) -> None:
    path = tmp_path / "f.json"
    records.write_json(path, {"a": 1})
    records.write_json(path, {"a": 2})
    assert records.read_json(path) == {"a": 2}
    assert [entry.name for entry in tmp_path.iterdir()] == ["f.json"]


def test_a_value_that_cannot_be_written_leaves_the_old_file(tmp_path: Path) -> None:
    path = tmp_path / "f.json"
    records.write_json(path, {"a": 1})
    with pytest.raises(TypeError):
        records.write_json(path, {"a": object()})
    assert records.read_json(path) == {"a": 1}


@pytest.mark.parametrize(
    "content", [b"", b"{", b"[]", b"null", b"\xff\xfe", b'{"a": ' * 100_000, b" " * (17 << 20)]
)
def test_damaged_files_are_none(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "f.json"
    path.write_bytes(content)
    assert records.read_json(path) is None
    assert records.read_json(tmp_path / "absent") is None
    assert records.read_json(tmp_path) is None


def test_a_fifo_in_the_place_of_a_file_keeps_nobody_waiting(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "f.json")
    assert records.read_json(tmp_path / "f.json") is None


def test_a_process_lives_until_it_ends(tmp_path: Path) -> None:
    path = tmp_path / "pid"
    with subprocess.Popen(["sleep", "60"]) as process:
        records.write_process(path, process.pid)
        found = records.read_process(path)
        assert found is not None
        assert records.alive(found)
        assert records.send_signal(found, signal.SIGKILL)
        os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)
        assert not records.alive(found), "a zombie is dead"
        assert not records.send_signal(found, signal.SIGKILL)
    assert not records.alive(found)
    assert not records.send_signal(found, signal.SIGKILL)


def test_an_id_that_was_given_anew_is_not_taken_for_the_old_process(tmp_path: Path) -> None:
    path = tmp_path / "pid"
    records.write_process(path, os.getpid())
    me = records.read_process(path)
    assert me is not None
    assert records.alive(me)
    older = dataclasses.replace(me, start=me.start - 1)
    assert not records.alive(older)
    assert not records.send_signal(older, signal.SIGKILL), "this test would not go on"
    assert not records.alive(dataclasses.replace(me, boot="another boot"))


@pytest.mark.parametrize(
    "content", ["", "17", '{"pid": "1"}', '{"pid": -1, "start": 1, "boot": ""}', '{"pid": 1}']
)
def test_a_damaged_record_is_no_process(tmp_path: Path, content: str) -> None:
    path = tmp_path / "pid"
    path.write_text(content)
    assert records.read_process(path) is None
    assert not records.alive(None)
