"""The steps that make disks ready: overlays, empty disks, host disks, kernel files."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path
from typing import Any

import pytest

from kvnode.launcher import container_disk, empty_disk, host_disk, kernel_boot, paths
from kvnode.launcher.errors import LauncherError


@pytest.fixture(autouse=True)
def pod(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A pod's directories, under a directory of the test."""
    for name in ("CONTAINER_DISKS", "EPHEMERAL", "EMPTY_DISKS", "VMI_DISKS", "KERNEL_BOOT"):
        directory = tmp_path / name.lower()
        directory.mkdir()
        monkeypatch.setattr(paths, name, directory)
    return tmp_path


def vmi(*volumes: dict[str, Any]) -> dict[str, Any]:
    """A VMI with these volumes."""
    return {"metadata": {"name": "v", "namespace": "n"}, "spec": {"volumes": list(volumes)}}


def info(path: Path) -> dict[str, Any]:
    """What qemu-img says of an image."""
    command = ["qemu-img", "info", "--output=json", str(path)]
    return dict(json.loads(subprocess.run(command, capture_output=True, check=True).stdout))


def test_a_container_disk_gets_an_overlay_of_its_images_format() -> None:
    subprocess.run(
        ["qemu-img", "create", "-q", "-f", "qcow2", str(paths.container_disk(1)), "8M"], check=True
    )
    container_disk.prepare(
        vmi({"name": "e", "emptyDisk": {}}, {"name": "root", "containerDisk": {"image": "i"}})
    )
    overlay = info(paths.overlay("root"))
    assert (overlay["format"], overlay["backing-filename"]) == ("qcow2", str(paths.container_disk(1)))
    assert (overlay["backing-filename-format"], overlay["virtual-size"]) == ("qcow2", 8 << 20)


def test_a_container_disk_without_its_image_is_named() -> None:
    with pytest.raises(LauncherError, match="volume root: the image of the container disk is not there"):
        container_disk.prepare(vmi({"name": "root", "containerDisk": {"image": "i"}}))


def test_an_empty_disk_has_its_capacity_and_keeps_its_content() -> None:
    volume = {"name": "scratch", "emptyDisk": {"capacity": "3Mi"}}
    empty_disk.prepare(vmi(volume))
    image = paths.empty_disk("scratch")
    assert (info(image)["format"], info(image)["virtual-size"]) == ("qcow2", 3 << 20)
    before = image.stat().st_ino
    empty_disk.prepare(vmi(volume))
    assert image.stat().st_ino == before
    assert [entry.name for entry in image.parent.iterdir()] == ["scratch.qcow2"], "nothing half-made stays"


@pytest.mark.parametrize("capacity", [None, "", "0", "-1", "many", {}])
def test_an_empty_disk_needs_a_size(capacity: object) -> None:
    with pytest.raises(LauncherError, match=r"volume scratch: emptyDisk\.capacity must be 1Mi or more"):
        empty_disk.prepare(vmi({"name": "scratch", "emptyDisk": {"capacity": capacity}}))


def test_a_missing_host_disk_is_made_sparse_and_an_existing_one_kept(pod: Path) -> None:
    directory = paths.VMI_DISKS / "data"
    directory.mkdir()
    source = {"path": "/srv/d.img", "type": "DiskOrCreate", "capacity": "5Mi"}
    host_disk.prepare(vmi({"name": "data", "hostDisk": source}))
    disk = directory / "d.img"
    assert disk.stat().st_size == 5 << 20
    assert disk.stat().st_blocks == 0
    disk.write_bytes(b"mine")
    host_disk.prepare(vmi({"name": "data", "hostDisk": source}))
    assert disk.read_bytes() == b"mine"


@pytest.mark.parametrize(
    ("source", "complaint"),
    [
        ({"path": "/srv/d.img", "type": "Disk"}, "/srv/d.img does not exist, and type is Disk"),
        ({"path": "/srv/d.img", "type": "DiskOrCreate"}, "capacity must be 1Mi or more"),
        ({"path": "/srv/d.img", "type": "DiskOrCreate", "capacity": "1Ei"}, "do not fit"),
        (
            {"path": "/srv/directory", "type": "DiskOrCreate", "capacity": "1Mi"},
            "neither a file nor a block device",
        ),
        (
            {"path": "/srv/dangling", "type": "DiskOrCreate", "capacity": "1Mi"},
            "neither a file nor a block device",
        ),
    ],
)
def test_host_disks_that_cannot_be(source: dict[str, Any], complaint: str) -> None:
    (paths.VMI_DISKS / "data/directory").mkdir(parents=True)
    (paths.VMI_DISKS / "data/dangling").symlink_to("/nowhere/at/all")
    with pytest.raises(LauncherError, match=complaint):
        host_disk.prepare(vmi({"name": "data", "hostDisk": source}))


@pytest.mark.parametrize(("free", "made"), [(100, 99), (92, 91), (90, None)])
def test_a_disk_may_be_made_a_tenth_smaller(
    monkeypatch: pytest.MonkeyPatch, free: int, made: int | None
) -> None:
    class System:
        f_frsize = 1 << 20
        f_bavail = free

    disk = paths.host_disk("data", "/srv/d.img")
    disk.parent.mkdir(parents=True)
    monkeypatch.setattr(os, "statvfs", lambda _path: System)
    machine = vmi(
        {"name": "data", "hostDisk": {"path": "/srv/d.img", "type": "DiskOrCreate", "capacity": "100Mi"}}
    )
    if made is None:
        with pytest.raises(LauncherError, match=rf"volume data: {100 << 20} bytes do not fit"):
            host_disk.prepare(machine)
        assert not disk.exists()
    else:
        host_disk.prepare(machine)
        assert disk.stat().st_size == made << 20, "whole mebibytes, less what stays free"


def test_a_directory_that_is_not_there_is_told() -> None:
    machine = vmi({"name": "gone", "hostDisk": {"path": "/srv/d", "type": "DiskOrCreate", "capacity": "1Mi"}})
    with pytest.raises(LauncherError, match="volume gone: the disk cannot be made: No such file"):
        host_disk.prepare(machine)


def test_kernel_files_are_looked_for_by_name() -> None:
    machine = vmi()
    container = {"image": "k", "kernelPath": "/boot/vmlinuz", "initrdPath": "/boot/initrd"}
    machine["spec"]["domain"] = {"firmware": {"kernelBoot": {"container": container}}}
    (paths.KERNEL_BOOT / "vmlinuz").touch()
    with pytest.raises(
        LauncherError, match=r"kernelBoot.container.initrdPath: /boot/initrd is not in the image"
    ):
        kernel_boot.prepare(machine)
    (paths.KERNEL_BOOT / "initrd").touch()
    kernel_boot.prepare(machine)
