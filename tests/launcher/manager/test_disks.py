"""Which disks of a running guest are plugged in, pulled out and exchanged."""

from __future__ import annotations

import os
import xml.etree.ElementTree as ET

import libvirt
import pytest

from kvnode.launcher.manager import disks
from kvnode.launcher.manager.disks import Source, attached, detached, exchanged, sync_disks
from kvnode.launcher.manager.xml import target_of
from tests.virt.errors import libvirt_error

HOTPLUG = "/var/run/kubevirt/hotplug-disks"


def disk(target, source=f"{HOTPLUG}/Vol.img", bus="scsi", device="disk", kind="file"):
    made = ET.Element("disk", {"type": kind, "device": device})
    if source:
        ET.SubElement(made, "source", {"file" if kind == "file" else "dev": source})
    ET.SubElement(made, "target", {"dev": target, "bus": bus})
    ET.SubElement(made, "driver", {"name": "qemu", "type": "raw"})
    ET.SubElement(made, "alias", {"name": f"ua-{target}"})
    return made


def domain(*made):
    root = ET.Element("domain")
    ET.SubElement(root, "devices").extend(made)
    return root


def targets(found):
    return [target_of(entry) for entry in found]


class Guest:
    """A running domain that notes what is asked of it."""

    def __init__(self, error=None):
        self.calls = []
        self._error = error

    def __getattr__(self, name):
        def call(xml, flags):
            if self._error is not None:
                raise self._error
            self.calls.append((name, ET.fromstring(xml), flags))

        return call


class TestChoice:
    @pytest.mark.parametrize("bus", ["virtio", "scsi", ""])
    def test_hotplugged_disks_come_and_go(self, bus):
        there = [disk("sda", bus=bus)]
        assert targets(attached([], there)) == ["sda"]
        assert targets(detached(there, [])) == ["sda"]
        assert targets(attached(there, there)) == targets(detached(there, there)) == []

    @pytest.mark.parametrize(
        "other",
        [
            disk("sda", source="/var/run/kubevirt-private/vmi-disks/a/disk.img"),
            disk("sda", bus="sata"),
            disk("sda", source="/var/run/kubevirt/hotplug-disks-not/a.img"),
            disk("sda", source=""),
        ],
    )
    def test_no_other_disk_does(self, other):
        assert targets(attached([], [other])) == targets(detached([other], [])) == []

    def test_a_drive_takes_and_loses_its_medium(self):
        empty, full = disk("sda", "", "sata", "cdrom"), disk("sda", f"{HOTPLUG}/Cd.img", "sata", "cdrom")
        (inserted,) = exchanged([empty], [full])
        assert inserted.find("source").get("file") == f"{HOTPLUG}/Cd.img"
        assert (inserted.get("type"), inserted.find("driver").get("type")) == ("file", "raw")
        for without in ([empty], []):
            (ejected,) = exchanged([full], without)
            assert ejected.find("source") is None
        assert list(exchanged([full], [full])) == []
        assert empty.find("source") is None, "the guest's own description was changed"

    def test_a_medium_that_is_a_device(self):
        other = disk("sda", f"{HOTPLUG}/Cd", "sata", "cdrom", "block")
        (inserted,) = exchanged([disk("sda", "", "sata", "cdrom")], [other])
        assert (inserted.get("type"), inserted.find("source").get("dev")) == ("block", f"{HOTPLUG}/Cd")

    def test_a_medium_of_the_pod_stays(self):
        own = disk("sda", "/var/run/kubevirt-private/vmi-disks/a/disk.img", "sata", "cdrom")
        assert list(exchanged([own], [])) == []
        assert list(exchanged([disk("sda", "", "sata", "cdrom")], [own])) == []

    def test_the_source_behind_a_tracking_overlay(self):
        made = disk("sda", "/overlay.qcow2")
        store = ET.SubElement(made.find("source"), "dataStore", {"type": "block"})
        ET.SubElement(store, "source", {"dev": f"{HOTPLUG}/Vol"})
        source = Source.of(made)
        assert (source.path, source.backend) == ("/overlay.qcow2", f"{HOTPLUG}/Vol")
        assert source.block
        assert source.overlay
        assert source.hotplugged


class TestSync:
    def test_names_keep_their_letters(self, monkeypatch):
        monkeypatch.setattr(disks, "ready", lambda _path: True)
        guest = Guest()
        assert sync_disks(guest, domain(disk("sdb")), domain(), lambda xml: xml)
        ((call, given, flags),) = guest.calls
        assert (call, given.find("source").get("file")) == ("attachDeviceFlags", f"{HOTPLUG}/Vol.img")
        assert flags == libvirt.VIR_DOMAIN_AFFECT_LIVE | libvirt.VIR_DOMAIN_AFFECT_CONFIG

    def test_modes_are_set_before(self, monkeypatch):
        monkeypatch.setattr(disks, "ready", lambda _path: True)
        guest = Guest()
        sync_disks(
            guest, domain(disk("sdb")), domain(), lambda xml: xml.replace("<driver", '<driver cache="none"')
        )
        assert guest.calls[0][1].find("driver").get("cache") == "none"

    def test_one_that_is_not_there_yet_waits(self):
        guest = Guest()
        assert not sync_disks(guest, domain(disk("sdb", f"{HOTPLUG}/nothing")), domain(), lambda xml: xml)
        assert guest.calls == []

    def test_a_guest_that_is_already_letting_go_is_not_pressed(self):
        error = libvirt_error("device sda is already in the process of unplug")
        assert not sync_disks(Guest(error), domain(), domain(disk("sda")), lambda xml: xml)

    def test_other_errors_are_told(self):
        error = libvirt_error()
        with pytest.raises(libvirt.libvirtError):
            sync_disks(Guest(error), domain(), domain(disk("sda")), lambda xml: xml)


class TestReady:
    def test_files_and_devices(self, tmp_path):
        (tmp_path / "file").write_bytes(b"")
        assert disks.ready(str(tmp_path / "file"))
        assert disks.ready("/dev/null")
        assert not disks.ready(str(tmp_path / "other"))
        assert not disks.ready(str(tmp_path))

    def test_a_pipe_does_not_make_it_wait(self, tmp_path):
        os.mkfifo(tmp_path / "pipe")
        disks.ready(str(tmp_path / "pipe"))  # with nobody at the other end
