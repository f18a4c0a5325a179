"""How VMs ended, kept over the agent's own end."""

from __future__ import annotations

from pathlib import Path

import pytest

from kvnode.agent.domain import Domain
from kvnode.agent.ends import Ends


def ended(uid: str, reason: str = "Shutdown") -> Domain:
    return Domain(
        {
            "ObjectMeta": {"namespace": "default", "name": "vm"},
            "Spec": {"Metadata": {"KubeVirt": {"UID": uid}}},
            "Status": {"Status": "Shutoff", "Reason": reason},
        }
    )


def test_the_next_agent_knows_it(tmp_path: Path) -> None:
    Ends(tmp_path / "ends").keep("u1", ended("u1", "Crashed"))
    found = Ends(tmp_path / "ends").get("u1")
    assert found is not None
    assert found.state("Reason") == "Crashed"


def test_what_is_told_is_forgotten(tmp_path: Path) -> None:
    ends = Ends(tmp_path)
    ends.keep("u1", ended("u1"))
    ends.forget("u1")
    ends.forget("never")
    assert ends.get("u1") is None
    assert list(tmp_path.iterdir()) == []


def test_what_nobody_asks_about_any_more_goes(tmp_path: Path) -> None:
    ends = Ends(tmp_path)
    for uid in ("u1", "u2"):
        ends.keep(uid, ended(uid))
    Ends(tmp_path).retain({"u2", "u3"})
    assert [path.name for path in tmp_path.iterdir()] == ["u2"]


def test_files_that_are_none_are_removed(tmp_path: Path) -> None:
    (tmp_path / ".u1").write_bytes(b"{")
    (tmp_path / "u2").write_bytes(b"[1]")
    (tmp_path / "u3").write_bytes(b'{"Spec": {"Metadata": {"KubeVirt": {"UID": "u4"}}}}')
    ends = Ends(tmp_path)
    assert [ends.get(uid) for uid in (".u1", "u2", "u3", "u4")] == [None] * 4
    assert list(tmp_path.iterdir()) == []


def test_without_room_memory_has_it(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    ends = Ends(tmp_path)
    tmp_path.rmdir()  # nothing can be written there, as on a full disk
    one = ended("u1")
    assert not ends.keep("u1", one)
    assert ends.get("u1") is one
    assert "default/vm: how it ended is not on the disk" in caplog.text
    assert not ends.keep("u1", one), "it is tried again each time"
    tmp_path.mkdir()
    assert ends.keep("u1", one)
    assert Ends(tmp_path).get("u1") is not None


def test_what_cannot_be_removed_holds_nobody_up(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    (tmp_path / "folder").mkdir()
    ends = Ends(tmp_path)
    ends.keep("u1", ended("u1"))
    (tmp_path / "u1").unlink()
    (tmp_path / "u1").mkdir()  # a file system that may not be written refuses it likewise
    ends.forget("u1")
    assert ends.get("u1") is None
    assert caplog.text.count("is left") == 2


def test_without_a_folder() -> None:
    ends = Ends()
    assert ends.keep("u1", ended("u1"))
    assert ends.get("u1") is not None
    ends.forget("u1")
    assert ends.get("u1") is None


def test_an_older_vm_of_the_name_is_forgotten(tmp_path: Path) -> None:
    ends = Ends(tmp_path)
    for uid in ("u1", "u2"):
        ends.keep(uid, ended(uid))
    ends.forget_others("default/other", "")
    ends.forget_others("default/vm", "u2")
    assert [path.name for path in tmp_path.iterdir()] == ["u2"]
    ends.forget_others("default/vm", "")
    assert list(tmp_path.iterdir()) == []
