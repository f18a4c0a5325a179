"""Every kind of disk, in guests that boot from them."""

from __future__ import annotations

import hashlib
from pathlib import Path

import pytest

from kvnode.standalone.runner import Runner, StartOptions
from tests.conftest import Guest
from tests.standalone.helpers import START_SECONDS, disk_vmi, wait_for_text
from tests.standalone.test_oci import Layout, entry, layer

pytestmark = pytest.mark.integration

USER_DATA = '#!/bin/sh\necho "kvnode-guest: said by the user data"\n'


def test_a_guest_sees_its_disks_and_its_cloud_init(runner: Runner, guest: Guest, tmp_path: Path) -> None:
    layout = Layout(tmp_path / "layout")
    layout.index(layout.image(layer(entry("disk/guest.qcow2", guest.qcow2.read_bytes()))))
    host_disk = tmp_path / "host/data.img"
    host_disk.parent.mkdir()
    volumes = [
        {"name": "root", "containerDisk": {"image": "guest"}},
        {"name": "scratch", "emptyDisk": {"capacity": "24Mi"}},
        {"name": "data", "hostDisk": {"path": str(host_disk), "type": "DiskOrCreate", "capacity": "12Mi"}},
        {"name": "seed", "cloudInitNoCloud": {"userData": USER_DATA}},
    ]
    runner.start(
        disk_vmi("disks", volumes), StartOptions(images={"root": layout.path}, timeout=START_SECONDS)
    )
    log = wait_for_text(runner.log_paths("disks")["serial"], "kvnode-guest: up after")
    assert f"disk vdb {24 << 20} bytes" in log
    assert f"disk vdc {12 << 20} bytes" in log
    assert f"cloud-init user-data sha256 {hashlib.sha256(USER_DATA.encode()).hexdigest()}" in log
    assert "kvnode-guest: hostname disks" in log
    assert "kvnode-guest: said by the user data" in log

    digest = hashlib.sha256(guest.qcow2.read_bytes()).hexdigest()
    directory = Path(runner.get("disks").directory)
    runner.stop("disks", now=True)
    assert host_disk.stat().st_size == 12 << 20, "a host disk outlives its VM"
    assert hashlib.sha256(guest.qcow2.read_bytes()).hexdigest() == digest, "an image is never written to"
    assert not list(directory.rglob("*.qcow2")), "what is written to a container disk goes with the VM"


def test_a_raw_image_boots_by_uefi(runner: Runner, guest: Guest) -> None:
    vmi = disk_vmi("uefi", [{"name": "root", "containerDisk": {"image": "guest"}}])
    vmi["spec"]["domain"]["firmware"] = {"bootloader": {"efi": {"secureBoot": False}}}
    vmi["spec"]["terminationGracePeriodSeconds"] = 600
    vmi["spec"]["domain"]["memory"]["guest"] = "512Mi"  # what the firmware needs to find its way
    runner.start(vmi, StartOptions(images={"root": guest.disk}, timeout=START_SECONDS))
    log = wait_for_text(runner.log_paths("uefi")["serial"], "kvnode-guest: up after")
    assert "UEFI boot" in log
    assert runner.stop("uefi").outcome == "shutdown"
