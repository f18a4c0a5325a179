"""<disk>: the device, its name, its driver, its address, and which disks are there."""

from __future__ import annotations

import string
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.fast.helpers import canonical, devices, domain, error_field, merged, xml


def claim(name: str) -> dict[str, Any]:
    return {"name": name, "persistentVolumeClaim": {"claimName": name}}


def vmi(*disks: dict[str, Any], **more: Any) -> dict[str, Any]:
    """A VMI with these disks, a claim behind each."""
    spec = {"spec": {"volumes": [claim(disk["name"]) for disk in disks]}}
    return merged(merged(devices(disks=list(disks)), spec), more)


def one(disk: dict[str, Any], **context: Any) -> Any:
    (element,) = domain(vmi({"name": "a", **disk}), **context).findall("devices/disk")
    return element


def targets(fragment: dict[str, Any], **context: Any) -> list[str | None]:
    found = [element.find("target") for element in domain(fragment, **context).findall("devices/disk")]
    return [target.get("dev") for target in found if target is not None]


def test_a_plain_virtio_disk() -> None:
    assert canonical(one({"disk": {"bus": "virtio"}})) == xml(
        """<disk device="disk" type="file" model="virtio-non-transitional">
             <source file="/var/run/kubevirt-private/vmi-disks/a/disk.img"/>
             <target bus="virtio" dev="vda"/>
             <driver name="qemu" type="raw" error_policy="stop" discard="unmap"/>
             <alias name="ua-a"/>
           </disk>"""
    )


def test_all_that_a_disk_can_say() -> None:
    disk = {
        "disk": {"bus": "sata", "readonly": True},
        "serial": "S&1",
        "cache": "writethrough",
        "io": "native",
        "bootOrder": 3,
        "errorPolicy": "report",
        "blockSize": {"custom": {"logical": 512, "physical": 4096, "discardGranularity": 0}},
    }
    assert canonical(one(disk, volumesDiscardIgnore=["a"])) == xml(
        """<disk device="disk" type="file">
             <source file="/var/run/kubevirt-private/vmi-disks/a/disk.img"/>
             <target bus="sata" dev="sda"/>
             <driver name="qemu" type="raw" error_policy="report" cache="writethrough" io="native"/>
             <readonly/>
             <serial>S&amp;1</serial>
             <blockio logical_block_size="512" physical_block_size="4096" discard_granularity="0"/>
             <alias name="ua-a"/>
             <boot order="3"/>
           </disk>"""
    )


def test_a_scsi_disk_sits_on_the_one_controller_at_the_unit_of_its_name() -> None:
    disks = [{"name": name, "disk": {"bus": "scsi"}} for name in "abc"]
    addresses = domain(vmi(*disks)).findall("devices/disk/address")
    assert [a.attrib for a in addresses] == [
        {"type": "drive", "controller": "0", "bus": "0", "unit": str(unit)} for unit in range(3)
    ]


def test_a_lun_with_reservations() -> None:
    source = one({"lun": {"bus": "scsi", "reservation": True}}, isBlockPVC={"a": True}).find("source")
    assert canonical(source) == xml(
        """<source dev="/dev/a" name="a">
             <reservations managed="no" migration="yes">
               <source type="unix" path="/var/run/kubevirt/daemons/pr/pr-helper.sock" mode="client"/>
             </reservations>
           </source>"""
    )


def test_a_lun_has_no_serial_and_no_model() -> None:
    lun = one({"lun": {"bus": "virtio"}, "serial": "S"})
    assert lun.get("device") == "lun"
    assert lun.get("model") is None
    assert lun.find("serial") is None


class TestCdrom:
    def test_it_is_read_only_unless_told_otherwise(self) -> None:
        assert one({"cdrom": {"bus": "sata"}}).find("readonly") is not None
        assert one({"cdrom": {"bus": "sata", "readonly": False}}).find("readonly") is None

    def test_its_tray_is_part_of_the_target(self) -> None:
        assert one({"cdrom": {"bus": "sata", "tray": "open"}}).find("target").attrib == {
            "bus": "sata",
            "dev": "sda",
            "tray": "open",
        }

    def test_it_has_no_unit_on_the_scsi_bus(self) -> None:
        assert one({"cdrom": {"bus": "scsi"}}).find("address") is None

    def test_a_drive_without_a_disc(self) -> None:
        (drive,) = domain(devices(disks=[{"name": "cd", "cdrom": {"bus": "sata"}}])).findall("devices/disk")
        assert canonical(drive) == xml(
            """<disk device="cdrom" type="block">
                 <target bus="sata" dev="sda"/>
                 <driver name="qemu" type="raw" error_policy="stop" discard="unmap"/>
                 <readonly/>
                 <alias name="ua-cd"/>
               </disk>"""
        )


class TestNames:
    def test_each_prefix_counts_by_itself(self) -> None:
        buses = ["virtio", "sata", "scsi", "virtio", "usb"]
        disks = [{"name": f"d{i}", "disk": {"bus": bus}} for i, bus in enumerate(buses)]
        assert targets(vmi(*disks)) == ["vda", "sda", "sdb", "vdb", "sdc"]

    def test_a_name_from_the_status_is_kept_and_the_others_fill_the_gaps(self) -> None:
        disks = [{"name": name, "disk": {"bus": "scsi"}} for name in ("c", "b", "d")]
        status = {"status": {"volumeStatus": [{"name": "b", "target": "sdb"}]}}
        root = domain(vmi(*disks, **status))
        assert [t.get("dev") for t in root.findall("devices/disk/target")] == ["sda", "sdb", "sdc"]
        assert [a.get("unit") for a in root.findall("devices/disk/address")] == ["0", "1", "2"]

    def test_a_status_of_another_prefix_is_kept_but_takes_no_name(self) -> None:
        disks = [{"name": name, "disk": {"bus": "virtio"}} for name in "ab"]
        status = {"status": {"volumeStatus": [{"name": "a", "target": "sda"}]}}
        assert targets(vmi(*disks, **status)) == ["sda", "vda"]

    @settings(max_examples=20, deadline=None)
    @given(st.integers(1, 800), st.sets(st.integers(0, 900), max_size=5))
    def test_names_are_those_of_the_kernel(self, count: int, kept: set[int]) -> None:
        letters = [*string.ascii_lowercase]
        letters += [a + b for a in string.ascii_lowercase for b in string.ascii_lowercase]
        letters += ["a" + pair for pair in letters[26:]]
        kept_names = dict(zip((f"d{i}" for i in range(count)), sorted(kept), strict=False))
        free = (n for n in range(2000) if n not in kept_names.values())
        want = [
            f"vd{letters[kept_names.get(f'd{i}', -1)]}" if f"d{i}" in kept_names else None
            for i in range(count)
        ]
        want = [name or f"vd{letters[next(free)]}" for name in want]
        disks = [{"name": f"d{i}", "disk": {"bus": "virtio"}} for i in range(count)]
        status = [{"name": disk, "target": f"vd{letters[n]}"} for disk, n in kept_names.items()]
        assert targets(vmi(*disks, status={"volumeStatus": status})) == want


class TestDriver:
    def test_a_shareable_disk_has_no_cache(self) -> None:
        disk = one({"disk": {"bus": "virtio"}, "shareable": True})
        assert disk.find("driver").get("cache") == "none"
        assert disk.find("shareable") is not None

    def test_a_shareable_disk_with_another_cache_is_refused(self) -> None:
        disk = {"name": "a", "disk": {"bus": "virtio"}, "shareable": True, "cache": "writeback"}
        assert error_field(vmi(disk)) == "spec.domain.devices.disks[0].cache"

    def test_queues_are_for_virtio_disks_and_count_the_vcpus(self) -> None:
        disks = [{"name": bus, "disk": {"bus": bus}} for bus in ("virtio", "sata")]
        drivers = domain(merged(vmi(*disks), devices(blockMultiQueue=True))).findall("devices/disk/driver")
        assert [driver.get("queues") for driver in drivers] == ["2", None]

    def test_encrypted_guests_reach_virtio_disks_through_an_iommu(self) -> None:
        disks = [{"name": bus, "disk": {"bus": bus}} for bus in ("virtio", "sata")]
        sev = {"spec": {"domain": {"launchSecurity": {"sev": {}}, "firmware": {"bootloader": {"efi": {}}}}}}
        fragment = merged(vmi(*disks), sev)
        drivers = domain(fragment, efi={"code": "/code.fd", "vars": "/vars.fd"}).findall(
            "devices/disk/driver"
        )
        assert [driver.get("iommu") for driver in drivers] == ["on", None]


class TestAddress:
    def test_a_named_pci_address(self) -> None:
        assert one({"disk": {"bus": "virtio", "pciAddress": "0000:81:1A.7"}}).find("address").attrib == {
            "type": "pci",
            "domain": "0x0000",
            "bus": "0x81",
            "slot": "0x1A",
            "function": "0x7",
        }

    @pytest.mark.parametrize(
        "address", ["81:11.1", "0000:81:11.8", "0000:81:11:1", "0000:81:11.1 ", "000g:81:11.1"]
    )
    def test_what_is_no_pci_address(self, address: str) -> None:
        disk = {"name": "a", "disk": {"bus": "virtio", "pciAddress": address}}
        assert error_field(vmi(disk)) == "spec.domain.devices.disks[0].disk.pciAddress"

    def test_only_virtio_disks_are_pci_devices(self) -> None:
        disk = {"name": "a", "disk": {"bus": "sata", "pciAddress": "0000:81:11.1"}}
        assert error_field(vmi(disk)) == "spec.domain.devices.disks[0].disk.pciAddress"


class TestHotplug:
    """Disks are part of the domain when their volume is permanent, or plugged and mounted."""

    DISKS = vmi(*({"name": name, "disk": {"bus": "scsi"}} for name in "abc"))

    def test_without_a_word_on_permanent_volumes_all_are_there(self) -> None:
        assert targets(self.DISKS) == ["sda", "sdb", "sdc"]

    @pytest.mark.parametrize(("phase", "there"), [("MountedToPod", True), ("Ready", True), ("Bound", False)])
    def test_a_hotplugged_volume_waits_for_its_mount(self, phase: str, there: bool) -> None:
        names = targets(
            self.DISKS, permanentVolumes={"a": {}, "c": {}}, hotplugVolumes={"b": {"phase": phase}}
        )
        assert names == (["sda", "sdb", "sdc"] if there else ["sda", "sdc"])

    def test_a_disk_that_waits_keeps_its_place_among_threads_but_takes_no_slot(self) -> None:
        disks = vmi(*({"name": name, "disk": {"bus": "virtio"}, "dedicatedIOThread": True} for name in "abc"))
        place = {"metadata": {"annotations": {"kubevirt.io/placePCIDevicesOnRootComplex": "true"}}}
        found = domain(merged(disks, place), permanentVolumes={"a": {}, "c": {}}).findall("devices/disk")
        assert [disk.find("driver").get("iothread") for disk in found] == ["2", "4"]  # type: ignore[union-attr]
        slots = [int(disk.find("address").get("slot"), 16) for disk in found]  # type: ignore[union-attr,arg-type]
        assert slots[1] == slots[0] + 1


class TestClaimSize:
    def test_the_claims_size_and_overhead_are_told_to_the_launcher(self) -> None:
        info = {
            "filesystemOverhead": "0.055",
            "capacity": {"storage": "2Gi"},
            "requests": {"storage": "1Gi"},
        }
        status = {"volumeStatus": [{"name": "a", "persistentVolumeClaimInfo": info}]}
        (disk,) = domain(vmi({"name": "a", "disk": {"bus": "virtio"}}, status=status)).findall("devices/disk")
        assert disk.findtext("filesystemOverhead") == "0.055"
        assert disk.findtext("capacity") == str(2**30)

    def test_a_cdrom_has_none(self) -> None:
        info = {"capacity": {"storage": "2Gi"}, "requests": {"storage": "1Gi"}}
        status = {"volumeStatus": [{"name": "a", "persistentVolumeClaimInfo": info}]}
        (disk,) = domain(vmi({"name": "a", "cdrom": {"bus": "sata"}}, status=status)).findall("devices/disk")
        assert disk.find("capacity") is None


@pytest.mark.parametrize(
    ("disk", "field"),
    [
        ({"errorPolicy": "later"}, "errorPolicy"),
        ({"errorPolicy": ""}, "errorPolicy"),
        ({"blockSize": {"matchVolume": {}}}, "blockSize.matchVolume"),
        ({"cache": 1}, "cache"),
        ({"serial": ["x"]}, "serial"),
        ({"bootOrder": "1"}, "bootOrder"),
        ({"disk": "virtio"}, "disk"),
        ({"disk": {"bus": 1}}, "disk.bus"),
        ({"dedicatedIOThread": "yes"}, "dedicatedIOThread"),
        ({"blockSize": {"custom": {"logical": -1}}}, "blockSize.custom.logical"),
    ],
)
def test_what_is_wrong_with_a_disk_is_named(disk: dict[str, Any], field: str) -> None:
    assert (
        error_field(vmi({"name": "a", "disk": {"bus": "virtio"}, **disk}))
        == f"spec.domain.devices.disks[0].{field}"
    )


def test_block_sizes_are_bounded_on_s390x() -> None:
    disk = {
        "name": "a",
        "disk": {"bus": "virtio"},
        "blockSize": {"custom": {"logical": 512, "physical": 8192}},
    }
    assert error_field(vmi(disk), architecture="s390x").endswith("blockSize.custom.physical")


def test_a_disk_needs_a_volume() -> None:
    fragment = devices(disks=[{"name": "a", "disk": {"bus": "virtio"}}])
    assert error_field(fragment) == "spec.domain.devices.disks[0].name"


def test_block_size_detection_that_is_off_asks_for_nothing() -> None:
    assert (
        one({"disk": {"bus": "virtio"}, "blockSize": {"matchVolume": {"enabled": False}}}).find("blockio")
        is None
    )
