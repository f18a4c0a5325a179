"""The smaller steps before a domain is defined, and who owns what they make."""

from __future__ import annotations

import os
import struct
from pathlib import Path
from typing import Any

import pytest

from kvnode.launcher import cloudinit, downward_metrics, ephemeral, ignition, ownership, paths, prepare
from kvnode.launcher.errors import LauncherError
from tests.launcher.test_disks import info


@pytest.fixture(autouse=True)
def pod(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The pod's directories, under one of the test."""
    for name in ("IGNITION", "EPHEMERAL", "VMI_DISKS"):
        monkeypatch.setattr(paths, name, tmp_path / name.lower())
    monkeypatch.setattr(paths, "DOWNWARD_METRIC_DISK", tmp_path / "metrics/vhostmd0")
    monkeypatch.setattr(ephemeral, "BLOCK_DEVICES", tmp_path / "dev")
    return tmp_path


def vmi(*volumes: dict[str, Any], **annotations: str) -> dict[str, Any]:
    """A VMI with these volumes."""
    return {
        "metadata": {"name": "v", "namespace": "n", "annotations": annotations},
        "spec": {"volumes": list(volumes)},
    }


def test_ignition_data_are_written_as_they_are() -> None:
    ignition.prepare(vmi(**{"kubevirt.io/ignitiondata": '{"ignition": "é"}'}))
    assert paths.ignition_file("n", "v").read_text() == '{"ignition": "é"}'
    assert [entry.name for entry in paths.ignition_file("n", "v").parent.iterdir()] == ["data.ign"]


def test_without_ignition_data_there_is_no_file() -> None:
    ignition.prepare(vmi())
    assert not paths.IGNITION.exists()


def test_a_claim_gets_a_layer_that_takes_the_writes() -> None:
    claim = paths.host_disk("data", "disk.img")
    claim.parent.mkdir(parents=True)
    claim.write_bytes(bytes(2 << 20))
    ephemeral.prepare(vmi({"name": "data", "ephemeral": {"persistentVolumeClaim": {"claimName": "c"}}}))
    layer = info(paths.overlay("data"))
    assert (layer["backing-filename"], layer["backing-filename-format"]) == (str(claim), "raw")
    assert layer["virtual-size"] == 2 << 20
    assert paths.overlay("data").stat().st_mode & 0o777 == 0o640


def test_a_claim_that_is_not_there_is_named() -> None:
    with pytest.raises(LauncherError, match=r"volume data: .*/data/disk.img of the claim is not there"):
        ephemeral.prepare(vmi({"name": "data", "ephemeral": {}}))


def test_the_disk_of_metrics_is_unlocked_and_sums_up() -> None:
    downward_metrics.prepare(vmi({"name": "m", "downwardMetrics": {}}))
    data = paths.DOWNWARD_METRIC_DISK.read_bytes()
    signature, lock, total, length = struct.unpack_from(">4siii", data)
    body = data[16 : 16 + length]
    assert (signature, lock, total) == (b"mvbd", 0, sum(body))
    assert (body, len(data)) == (b"<metrics></metrics>\n", 256 << 10)


@pytest.mark.parametrize("name", ["", ".staging"])
def test_a_link_in_the_place_of_the_disk_of_metrics_is_not_followed(tmp_path: Path, name: str) -> None:
    other = tmp_path / "other"
    other.write_bytes(b"mine")
    disk = paths.DOWNWARD_METRIC_DISK
    disk.parent.mkdir(parents=True, exist_ok=True)
    disk.with_name(disk.name + name).symlink_to(other)
    downward_metrics.prepare(vmi({"name": "m", "downwardMetrics": {}}))
    assert other.read_bytes() == b"mine"
    assert (disk.stat().st_size, disk.is_symlink()) == (256 << 10, False)


def test_only_a_volume_of_metrics_makes_their_disk() -> None:
    downward_metrics.prepare(vmi({"name": "m", "emptyDisk": {}}))
    assert not paths.DOWNWARD_METRIC_DISK.exists()


def test_cloud_init_can_be_left_for_later() -> None:
    assert cloudinit.prepare in prepare.STEPS
    assert cloudinit.prepare not in prepare.DISK_STEPS
    assert set(prepare.STEPS) - set(prepare.DISK_STEPS) == {cloudinit.prepare}


@pytest.mark.skipif(os.geteuid() != 0, reason="only root gives files away")
def test_files_go_to_the_user_of_qemu(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "file"
    file.touch()
    monkeypatch.setattr(ownership, "_owner", lambda: (107, 107))
    ownership.give_to_qemu(file)
    assert (file.stat().st_uid, file.stat().st_gid) == (107, 107)


def test_without_that_user_files_stay(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "file"
    file.touch()
    monkeypatch.setattr(ownership, "_owner", lambda: None)
    ownership.give_to_qemu(file)
    assert file.stat().st_uid == os.geteuid()
