"""Host disks that the agent makes."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from kvnode.agent.diskimages import make_host_disks
from kvnode.agent.errors import AgentError
from kvnode.spec.config import ClusterConfig
from tests.agent.build import vmi

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="files are given to others")

MIB = 1 << 20
DISKS = "var/run/kubevirt-private/vmi-disks"


@pytest.fixture
def root(tmp_path: Path) -> Path:
    (tmp_path / "root" / DISKS / "data").mkdir(parents=True)
    return tmp_path / "root"


def machine(**disk: Any) -> dict[str, Any]:
    source = {"path": "/srv/images/my.img", "type": "DiskOrCreate", "capacity": "64Mi", **disk}
    return vmi("Scheduled", spec={"volumes": [{"name": "data", "hostDisk": source}, {"name": "other"}]})


def make(found: dict[str, Any], root: Path, **developer: int) -> list[str]:
    told: list[str] = []
    config = ClusterConfig.from_mapping({"developerConfiguration": developer})
    make_host_disks(found, root, config, told.append)
    return told


class Free:
    """A file system with so much room."""

    def __init__(self, size: int) -> None:
        self.f_bavail, self.f_frsize = size // 512, 512


def test_a_disk_is_made_sparse_for_the_launchers_user(root: Path) -> None:
    assert make(machine(), root) == []
    found = (root / DISKS / "data/my.img").stat()
    assert (found.st_size, found.st_blocks) == (64 * MIB, 0)
    assert (found.st_uid, found.st_gid, found.st_mode & 0o777) == (107, 107, 0o660)
    # The folder may be one of the node's.
    assert (root / DISKS / "data").stat().st_uid == 0


def test_a_disk_that_is_there_stays_as_it_is(root: Path) -> None:
    image = root / DISKS / "data/my.img"
    image.write_bytes(b"data")
    make(machine(), root)
    assert image.read_bytes() == b"data"
    image.unlink()
    image.symlink_to("/nowhere")
    make(machine(), root)
    assert image.is_symlink()


def test_disks_that_are_to_be_there_are_not_made(root: Path) -> None:
    make(machine(type="Disk"), root)
    assert not list((root / DISKS / "data").iterdir())


def test_a_little_less_room_is_tolerated_and_told(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "fstatvfs", lambda _file: Free(60 * MIB))
    (text,) = make(machine(), root)
    # 128Ki are kept free, and disks are whole mebibytes.
    assert "volume data: 62783488 bytes are free of 67108864" in text
    assert (root / DISKS / "data/my.img").stat().st_size == 59 * MIB


@pytest.mark.parametrize(
    ("developer", "words"),
    [
        ({"pvcTolerateLessSpaceUpToPercent": 5}, "5 per cent"),
        ({"minimumReservePVCBytes": 10 * MIB}, f"{50 * MIB} are free"),
    ],
)
def test_too_little_room_is_an_error(
    root: Path, monkeypatch: pytest.MonkeyPatch, developer: dict[str, int], words: str
) -> None:
    monkeypatch.setattr(os, "fstatvfs", lambda _file: Free(60 * MIB))
    with pytest.raises(
        AgentError, match=rf"volume data: hostDisk.capacity: 67108864 bytes do not fit .*{words}"
    ):
        make(machine(), root, **developer)
    assert not list((root / DISKS / "data").iterdir())


@pytest.mark.parametrize(
    ("disk", "words"),
    [
        ({"capacity": "1k"}, "hostDisk.capacity: must be 1Mi or more"),
        ({"capacity": "many"}, "hostDisk.capacity: "),
        ({"capacity": None}, "hostDisk.capacity: must be 1Mi or more"),
        ({"path": "/srv/.."}, "hostDisk.path: must name a file"),
    ],
)
def test_what_cannot_be_is_named(root: Path, disk: dict[str, Any], words: str) -> None:
    with pytest.raises(AgentError, match=f"volume data: {words}"):
        make(machine(**disk), root)


def test_a_folder_that_is_not_there_or_leads_away(root: Path, tmp_path: Path) -> None:
    (tmp_path / "elsewhere").mkdir()
    folder = root / DISKS / "data"
    folder.rmdir()
    with pytest.raises(
        AgentError, match=r"volume data: hostDisk.path: /srv/images/my.img cannot be made: No such"
    ):
        make(machine(), root)
    folder.symlink_to("../../../../../../elsewhere")
    with pytest.raises(AgentError, match="cannot be made"):
        make(machine(), root)
    assert not list((tmp_path / "elsewhere").iterdir())


def test_nothing_is_left_of_a_disk_that_could_not_be_finished(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(_file: int, _size: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "ftruncate", full)
    with pytest.raises(AgentError, match="No space left"):
        make(machine(), root)
    assert not list((root / DISKS / "data").iterdir())
