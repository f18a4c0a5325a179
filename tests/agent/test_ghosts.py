"""Records of launchers."""

from __future__ import annotations

import errno
import os
from pathlib import Path

import pytest

from kvnode.agent.cleanup import clean_up_moved
from kvnode.agent.errors import AgentError
from kvnode.agent.ghost import Ghost
from kvnode.agent.ghosts import GhostRecords
from kvnode.agent.processes import Household
from tests.agent.build import drive, vmi, world

OLD = Ghost("ns1", "t", "old", "/dead")
NEW = Ghost("ns1", "t", "new", "/pods/p/launcher-sock")


async def nobody(_socket: str) -> bool:
    return False


async def somebody(_socket: str) -> bool:
    return True


@pytest.fixture
def records(tmp_path: Path) -> GhostRecords:
    return GhostRecords(tmp_path / "ghost-records")


def test_they_outlive_the_agent(records, tmp_path):
    drive(records.add(NEW, nobody))
    again = GhostRecords(tmp_path / "ghost-records")
    assert list(again) == [NEW]
    assert again.last_known_uid("ns1/t") == "new"


def test_a_dead_older_one_makes_room(records, tmp_path):
    drive(records.add(OLD, nobody))
    drive(records.add(NEW, nobody))
    assert [path.name for path in (tmp_path / "ghost-records").iterdir()] == ["new"]


def test_one_that_answers_does_not(records):
    drive(records.add(OLD, somebody))
    with pytest.raises(AgentError, match=r"old.*still answers at /dead"):
        drive(records.add(NEW, somebody))
    assert records.last_known_uid("ns1/t") == "old"


def test_the_same_again_asks_nobody(records):
    drive(records.add(NEW, nobody))
    drive(records.add(NEW, somebody))
    assert list(records) == [NEW]


class TestProcesses:
    """What a record knows of its launcher's."""

    HOUSEHOLD = Household(os.getpid(), 12345)

    def test_they_outlive_the_agent_and_go_with_the_record(self, records, tmp_path):
        drive(records.add(NEW, nobody))
        drive(records.add(NEW, somebody, self.HOUSEHOLD))
        drive(records.add(NEW, somebody))
        again = GhostRecords(tmp_path / "ghost-records")
        assert again.household("new") == self.HOUSEHOLD
        again.delete("ns1/t")
        assert again.household("new") is None

    def test_a_record_without_them_is_one(self, records, tmp_path):
        drive(records.add(NEW, nobody))
        assert GhostRecords(tmp_path / "ghost-records").household("new") is None

    @pytest.mark.parametrize("text", ["7", "null", '{"pid": 1, "started": 5}', '{"pid": "9"}', '{"pid": 9}'])
    def test_such_as_cannot_be_are_none(self, records, tmp_path, text):
        drive(records.add(NEW, nobody))
        path = tmp_path / "ghost-records/new"
        path.write_text(path.read_text().replace("{", f'{{"process": {text}, ', 1))
        again = GhostRecords(tmp_path / "ghost-records")
        assert list(again) == [NEW]
        assert again.household("new") is None

    def test_an_older_vm_whose_qemu_lives_makes_no_room(self, records, monkeypatch):
        drive(records.add(OLD, nobody, self.HOUSEHOLD))
        monkeypatch.setattr(Household, "has_qemu", lambda _household: True)
        with pytest.raises(AgentError, match=r"QEMU of an older VM of that name \(old\)"):
            drive(records.add(NEW, nobody))
        monkeypatch.setattr(Household, "has_qemu", lambda _household: False)
        drive(records.add(NEW, nobody))
        assert list(records) == [NEW]


@pytest.mark.parametrize("uid", ["", "..", "a/b", ".hidden", "a\0b"])
def test_a_uid_is_a_files_name_and_nothing_else(records, uid):
    with pytest.raises(AgentError, match="uid"):
        drive(records.add(Ghost("ns1", "t", uid, "/s"), nobody))


def test_a_part_must_not_be_empty(records):
    with pytest.raises(AgentError, match="socket must not be empty"):
        drive(records.add(Ghost("ns1", "t", "u", ""), nobody))


def test_a_full_disk_is_one_clear_error(records, monkeypatch, tmp_path):
    def full(_descriptor):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", full)
        with pytest.raises(AgentError, match="ns1/t cannot be written: No space left"):
            drive(records.add(NEW, nobody))
    assert list((tmp_path / "ghost-records").iterdir()) == []
    drive(records.add(NEW, nobody))
    assert list(records) == [NEW]


@pytest.mark.parametrize(
    "text", ["", "{", "[]", "{}", '{"name":1,"namespace":"n","uid":"bad","socketFile":"s"}', "\x00\x01"]
)
def test_files_that_are_no_records_hurt_nobody(tmp_path, text):
    folder = tmp_path / "ghost-records"
    folder.mkdir()
    (folder / "bad").write_text(text)
    (folder / ".cut-off").write_text("{")
    assert list(GhostRecords(folder)) == []
    assert [path.name for path in folder.iterdir()] == ["bad"]


def test_deleting_twice_is_once(records):
    drive(records.add(NEW, nobody))
    records.delete("ns1/t")
    records.delete("ns1/t")
    assert list(records) == []


class TestMoved:
    GHOST = Ghost("default", "testvmi", "uid-1", "/dead")

    def calls(self, records, one, answers):
        drive(records.add(self.GHOST, nobody))
        made = world(None, None, vmi_in_cluster_wide_store=one)
        drive(clean_up_moved(records, answers, made.parts))
        return made.calls

    def elsewhere(self):
        return vmi(labels={"kubevirt.io/nodeName": "other"}, status={"nodeName": "other"})

    def test_what_is_left_of_it_goes(self, records):
        assert self.calls(records, self.elsewhere(), nobody)[-1] == "launcherClients.Close"

    def test_not_while_its_launcher_answers(self, records):
        assert self.calls(records, self.elsewhere(), somebody) == ["api.ReadVMI"]

    def test_not_when_it_is_still_ours_or_gone(self, records):
        assert self.calls(records, vmi(), nobody) == ["api.ReadVMI"]
        assert self.calls(records, None, nobody) == ["api.ReadVMI"]
