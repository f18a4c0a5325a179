"""What a volume is inside the launcher's pod."""

from __future__ import annotations

from typing import Any

import pytest

from tests.fast.helpers import canonical, devices, domain, error_field, merged, xml


def vmi(volume: dict[str, Any], device: str = "disk") -> dict[str, Any]:
    disks = devices(disks=[{"name": "v", device: {"bus": "virtio"}}])
    return merged(disks, {"spec": {"volumes": [{"name": "v", **volume}]}})


def disk(volume: dict[str, Any], **context: Any) -> Any:
    (element,) = domain(vmi(volume), **context).findall("devices/disk")
    return element


FILES = {
    "cloudInitNoCloud": "/var/run/libvirt/cloud-init-dir/ns/vm/noCloud.iso",
    "cloudInitConfigDrive": "/var/run/libvirt/cloud-init-dir/ns/vm/configdrive.iso",
    "sysprep": "/var/run/kubevirt-private/sysprep-disks/v.iso",
    "configMap": "/var/run/kubevirt-private/config-map-disks/v.iso",
    "secret": "/var/run/kubevirt-private/secret-disks/v.iso",
    "downwardAPI": "/var/run/kubevirt-private/downwardapi-disks/v.iso",
    "serviceAccount": "/var/run/kubevirt-private/service-account-disk/service-account.iso",
    "emptyDisk": "/var/run/libvirt/empty-disks/v.qcow2",
    "persistentVolumeClaim": "/var/run/kubevirt-private/vmi-disks/v/disk.img",
    "dataVolume": "/var/run/kubevirt-private/vmi-disks/v/disk.img",
}


@pytest.mark.parametrize(("kind", "path"), FILES.items())
def test_volumes_that_are_one_file(kind: str, path: str) -> None:
    element = disk({kind: {}})
    assert element.get("type") == "file"
    assert element.find("source").attrib == {"file": path}
    assert element.find("driver").get("type") == ("qcow2" if kind == "emptyDisk" else "raw")


@pytest.mark.parametrize(
    ("path", "tail"),
    [("/data/disk.img", "/disk.img"), ("/data/", "/data"), ("x", "/x"), ("/", ""), ("", ""), (".", "")],
)
def test_a_host_disk_is_found_by_its_files_name(path: str, tail: str) -> None:
    source = disk({"hostDisk": {"path": path, "type": "Disk"}}).find("source")
    assert source.get("file") == f"/var/run/kubevirt-private/vmi-disks/v{tail}"


@pytest.mark.parametrize(
    ("kind", "key"), [("persistentVolumeClaim", "isBlockPVC"), ("dataVolume", "isBlockDV")]
)
def test_block_devices(kind: str, key: str) -> None:
    element = disk({kind: {}}, **{key: {"v": True}})
    assert element.get("type") == "block"
    assert element.find("source").attrib == {"dev": "/dev/v", "name": "v"}


def test_a_container_disk_is_an_overlay_over_the_image_of_its_number() -> None:
    fragment = merged(
        devices(disks=[{"name": "v", "disk": {"bus": "virtio"}}]),
        {
            "spec": {
                "volumes": [
                    {"name": "other", "emptyDisk": {}},
                    {"name": "v", "containerDisk": {"image": "i"}},
                ]
            }
        },
    )
    (element,) = domain(fragment, disksInfo={"v": {"format": "raw"}}).findall("devices/disk")
    assert element.find("source").attrib == {  # type: ignore[union-attr]
        "file": "/var/run/kubevirt-ephemeral-disks/disk-data/v/disk.qcow2"
    }
    assert canonical(element.find("backingStore")) == xml(
        """<backingStore type="file">
             <format type="raw"/>
             <source file="/var/run/kubevirt/container-disks/disk_1.img"/>
           </backingStore>"""
    )


def test_a_container_disk_of_unknown_format_is_refused() -> None:
    assert error_field(vmi({"containerDisk": {"image": "i"}})) == "spec.domain.devices.disks[0].name"


CLAIM_AS_BACKING = {
    False: """<backingStore type="file"><format type="raw"/>
                <source file="/var/run/kubevirt-private/vmi-disks/v/disk.img"/>
              </backingStore>""",
    True: """<backingStore type="block"><format type="raw"/>
               <source dev="/dev/v" name="v"/>
             </backingStore>""",
}


@pytest.mark.parametrize(("block", "backing"), CLAIM_AS_BACKING.items())
def test_an_ephemeral_volume_is_an_overlay_over_its_claim(block: bool, backing: str) -> None:
    element = disk({"ephemeral": {"persistentVolumeClaim": {"claimName": "c"}}}, isBlockPVC={"v": block})
    assert element.find("driver").get("type") == "qcow2"
    assert canonical(element.find("backingStore")) == xml(backing)


def test_downward_metrics_are_a_bare_read_only_disk() -> None:
    fragment = merged(vmi({"downwardMetrics": {}}), {})
    fragment["spec"]["domain"]["devices"]["disks"][0].update(cache="none", io="native")
    (element,) = domain(fragment).findall("devices/disk")
    assert canonical(element) == xml(
        """<disk device="disk" type="file" model="virtio-non-transitional">
             <source file="/var/run/kubevirt-private/downwardapi-disks/vhostmd0"/>
             <target bus="virtio" dev="vda"/>
             <driver name="qemu" type="raw" error_policy="stop"/>
             <readonly/>
             <alias name="ua-v"/>
           </disk>"""
    )


class TestDiscard:
    """Disks and LUNs pass discards on, unless told not to; overlays always do."""

    @pytest.mark.parametrize(
        ("kind", "device", "discards"),
        [
            ("persistentVolumeClaim", "disk", False),
            ("configMap", "lun", False),
            ("emptyDisk", "disk", True),
            ("emptyDisk", "cdrom", True),
            ("persistentVolumeClaim", "cdrom", False),
        ],
    )
    def test_an_ignored_volume(self, kind: str, device: str, discards: bool) -> None:
        root = domain(vmi({kind: {}}, device), volumesDiscardIgnore=["v"])
        assert [d.get("discard") for d in root.findall("devices/disk/driver")] == [
            "unmap" if discards else None
        ]

    @pytest.mark.parametrize(
        ("kind", "device", "discards"),
        [
            ("configMap", "cdrom", False),
            ("configMap", "disk", True),
            ("persistentVolumeClaim", "cdrom", True),
        ],
    )
    def test_any_other(self, kind: str, device: str, discards: bool) -> None:
        root = domain(vmi({kind: {}}, device))
        assert [d.get("discard") for d in root.findall("devices/disk/driver")] == [
            "unmap" if discards else None
        ]


class TestChangedBlockTracking:
    """A qcow2 file holds the bitmaps, over the raw image."""

    @pytest.mark.parametrize(
        ("block", "hotplug", "kind", "image"),
        [
            (False, False, "file", "/var/run/kubevirt-private/vmi-disks/v/disk.img"),
            (True, False, "block", "/dev/v"),
            (False, True, "file", "/var/run/kubevirt/hotplug-disks/v.img"),
            (True, True, "block", "/var/run/kubevirt/hotplug-disks/v"),
        ],
    )
    def test_claims(self, block: bool, hotplug: bool, kind: str, image: str) -> None:
        context: dict[str, Any] = {"isBlockPVC": {"v": block}, "applyCBT": {"v": "/cbt/v.qcow2"}}
        if hotplug:
            context["hotplugVolumes"] = {"v": {"phase": "Ready"}}
        element = disk({"persistentVolumeClaim": {}}, **context)
        assert element.get("type") == "file"
        assert element.find("driver").get("type") == "qcow2"
        name = 'name="v"' if block and not hotplug else ""
        assert canonical(element.find("source")) == xml(
            f"""<source file="/cbt/v.qcow2" {name}>
                  <dataStore type="{kind}"><format type="raw"/>
                    <source {"dev" if block else "file"}="{image}"/>
                  </dataStore>
                </source>"""
        )

    def test_host_disks(self) -> None:
        element = disk({"hostDisk": {"path": "/data/d.img"}}, applyCBT={"v": "/cbt/v.qcow2"})
        assert element.find("driver").get("type") == "qcow2"
        assert canonical(element.find("source")) == xml(
            """<source file="/cbt/v.qcow2"><dataStore type="file"><format type="raw"/>
                 <source file="/var/run/kubevirt-private/vmi-disks/v/d.img"/>
               </dataStore></source>"""
        )


class TestHotplug:
    @pytest.mark.parametrize("kind", ["persistentVolumeClaim", "dataVolume", "hostDisk"])
    @pytest.mark.parametrize("block", [False, True])
    def test_hotplugged_claims_have_paths_of_their_own(self, kind: str, block: bool) -> None:
        known = {"v": block}
        element = disk({kind: {}}, hotplugVolumes={"v": {}}, isBlockPVC=known, isBlockDV=known)
        want = "/var/run/kubevirt/hotplug-disks/v"
        assert element.find("source").attrib == ({"dev": want} if block else {"file": f"{want}.img"})

    def test_other_volumes_cannot_be_hotplugged(self) -> None:
        assert error_field(vmi({"emptyDisk": {}}), hotplugVolumes={"v": {}}) == "spec.volumes[0]"


@pytest.mark.parametrize("volume", [{}, {"memoryDump": {}}, {"containerPath": {}}])
def test_a_volume_that_no_disk_can_be_made_of(volume: dict[str, Any]) -> None:
    assert error_field(vmi(volume)) == "spec.volumes[0]"


def test_what_is_wrong_with_the_context_is_named() -> None:
    fragment = vmi({"persistentVolumeClaim": {}})
    assert error_field(fragment, isBlockPVC={"v": "yes"}) == "context.isBlockPVC.v"
    assert error_field(fragment, applyCBT={"v": 1}) == "context.applyCBT.v"
