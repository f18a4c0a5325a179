"""``blockSize.matchVolume``: the launcher asks the volume."""

from __future__ import annotations

import json
import os
import xml.etree.ElementTree as ET
from pathlib import Path
from typing import Any

import pytest

from kvnode.launcher.manager import block_sizes
from kvnode.launcher.manager.block_sizes import fill_in, fitting, sizes_of
from kvnode.launcher.manager.errors import ManagerError
from kvnode.launcher.manager.instance import Instance
from tests.launcher.manager.test_hostile import OPTIONS, synchronizer


def instance(block_size: dict[str, Any] | None) -> Instance:
    """A VMI of one disk."""
    disk = {"name": "root", "disk": {"bus": "virtio"}, "blockSize": block_size}
    spec = {
        "domain": {"devices": {"disks": [disk]}, "memory": {"guest": "64Mi"}},
        "volumes": [{"name": "root", "emptyDisk": {"capacity": "1Gi"}}],
    }
    return Instance.read(
        json.dumps({"metadata": {"name": "a", "namespace": "n", "uid": "u"}, "spec": spec}).encode()
    )


@pytest.mark.parametrize("wish", [{}, {"enabled": True}])
def test_a_disk_gets_the_sizes_of_its_file_system(wish: dict[str, Any]) -> None:
    """The disk is to be made yet, so that the directories above answer."""
    vmi = instance({"matchVolume": wish})
    sizes = synchronizer().wanted(vmi, OPTIONS).find("devices/disk/blockio")
    assert sizes is not None
    size = str(os.statvfs("/var").f_bsize)
    assert (sizes.get("logical_block_size"), sizes.get("physical_block_size")) == (size, size)
    assert vmi.devices["disks"][0]["blockSize"]["matchVolume"] is not None, "the VMI is not changed"


@pytest.mark.parametrize(
    ("block_size", "logical"),
    [
        (None, None),
        ({"matchVolume": {"enabled": False}}, None),
        ({"matchVolume": {}, "custom": {"logical": 512, "physical": 512}}, "512"),
    ],
)
def test_others_keep_theirs(block_size: dict[str, Any] | None, logical: str | None) -> None:
    sizes = synchronizer().wanted(instance(block_size), OPTIONS).find("devices/disk/blockio")
    assert (None if sizes is None else sizes.get("logical_block_size")) == logical


def test_the_same_vmi_with_and_without_the_wish_are_two() -> None:
    made = synchronizer()
    assert made.wanted(instance(None), OPTIONS).find("devices/disk/blockio") is None
    assert made.wanted(instance({"matchVolume": {}}), OPTIONS).find("devices/disk/blockio") is not None
    assert made.wanted(instance(None), OPTIONS).find("devices/disk/blockio") is None


@pytest.mark.parametrize(
    ("told", "made"),
    [
        ((512, 4096, 4096), (512, 4096, 4096)),
        ((512, 0, 0), (512, 512, 0)),
        ((0, 4096, 0), (4096, 4096, 0)),
        ((4096, 4096, 512), (4096, 4096, 4096)),
    ],
)
def test_what_a_device_tells_fits_together(told: tuple[int, int, int], made: tuple[int, int, int]) -> None:
    assert fitting(*told) == made


def test_a_device_that_tells_nothing_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    def nothing(_path: str) -> tuple[int, int, int]:
        return fitting(0, 0, 0)

    monkeypatch.setattr(block_sizes, "sizes_of", nothing)
    disk = '<disk><source dev="/dev/x"/><alias name="ua-root"/></disk>'
    with pytest.raises(
        ManagerError, match=r"volume root: .*/dev/x does not tell its block sizes: both are 0"
    ):
        fill_in(ET.fromstring(f"<domain><devices>{disk}</devices></domain>"), ["root"])


def test_the_unit_of_discards_is_told_too() -> None:
    disk = '<disk><source file="/"/><alias name="ua-root"/></disk>'
    domain = ET.fromstring(f"<domain><devices>{disk}</devices></domain>")
    fill_in(domain, ["root"])
    sizes = domain.find("devices/disk/blockio")
    assert sizes is not None
    assert sizes.get("discard_granularity") == str(os.statvfs("/").f_bsize)


def test_a_drive_without_media_has_no_sizes() -> None:
    domain = ET.fromstring('<domain><devices><disk><alias name="ua-cd"/></disk></devices></domain>')
    with pytest.raises(ManagerError, match=r"volume cd: .*needs a file or a block device"):
        fill_in(domain, ["cd"])


def test_a_real_device() -> None:
    """Where this machine has one that may be opened."""
    for device in sorted(Path("/sys/block").iterdir()):
        queue, node = device / "queue", Path("/dev", device.name)
        if not node.is_block_device():
            continue
        try:
            sizes = sizes_of(str(node))
        except OSError:
            continue
        logical, physical = (
            int((queue / part).read_text()) for part in ("logical_block_size", "physical_block_size")
        )
        assert sizes[:2] == (logical, physical)
        return
    pytest.skip("no block device may be opened")
