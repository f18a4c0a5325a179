"""Which changes of disks and interfaces a running guest takes."""

from __future__ import annotations

from typing import Any

import pytest

from kvnode.provenance.devices import disk_verdict, interface_verdict

VIRTIO = {"name": "d", "disk": {"bus": "virtio"}}
SCSI = {"name": "d", "disk": {"bus": "scsi"}}
SATA = {"name": "d", "disk": {"bus": "sata"}}
CDROM = {"name": "d", "cdrom": {"bus": "sata"}}
LUN = {"name": "d", "lun": {"bus": "scsi"}}


def claim(name: str, *, hot: bool = True) -> dict[str, Any]:
    return {"name": "d", "persistentVolumeClaim": {"claimName": name, "hotpluggable": hot}}


@pytest.mark.parametrize(
    ("disks", "volumes", "live", "why"),
    [
        ((None, VIRTIO), (None, claim("a")), True, "plugged in"),
        ((None, SCSI), (None, claim("a")), True, "plugged in"),
        ((None, VIRTIO), (None, claim("a", hot=False)), False, "not hotpluggable"),
        ((None, SATA), (None, claim("a")), False, "sata"),
        ((VIRTIO, None), (claim("a"), None), True, "unplugged"),
        ((VIRTIO, None), (claim("a", hot=False), None), False, "not hotpluggable"),
        ((VIRTIO, VIRTIO), (claim("a"), claim("b")), True, "the new one plugged in"),
        ((VIRTIO, SCSI), (claim("a"), claim("a")), False, "as it was plugged in"),
        ((VIRTIO, {**VIRTIO, "cache": "none"}), (claim("a", hot=False),) * 2, False, "not hotpluggable"),
        ((None, VIRTIO), (None, {"name": "d", "containerDisk": {"image": "x"}}), False, "not hotpluggable"),
        (
            (None, VIRTIO),
            (None, {"name": "d", "dataVolume": {"name": "x", "hotpluggable": True}}),
            True,
            "plugged",
        ),
        ((CDROM, CDROM), (claim("a"), claim("b")), True, "changed"),
        ((CDROM, CDROM), (claim("a"), None), True, "taken out"),
        ((CDROM, CDROM), (None, claim("b")), True, "put in"),
        ((CDROM, CDROM), (claim("a", hot=False), claim("b")), False, "not hotpluggable"),
        ((CDROM, {**CDROM, "bootOrder": 1}), (claim("a"), claim("a")), False, "drive stays"),
        ((CDROM, None), (claim("a"), None), False, "drive stays"),
        ((None, CDROM), (None, claim("a")), False, "sata"),
        ((None, CDROM), (None, None), False, "without a volume"),
    ],
)
def test_disks(disks: Any, volumes: Any, live: bool, why: str) -> None:
    verdict = disk_verdict(disks, volumes, room=True, copies=False)
    assert verdict.live is live
    assert why in verdict.why


def test_no_room_for_disks() -> None:
    verdict = disk_verdict((None, VIRTIO), (None, claim("a")), room=False, copies=False)
    assert not verdict.live
    assert "disableHotplug" in verdict.why


@pytest.mark.parametrize(
    ("disks", "volumes", "live"),
    [
        ((VIRTIO, VIRTIO), (claim("a", hot=False), claim("b", hot=False)), True),
        ((VIRTIO, SCSI), (claim("a", hot=False), claim("b", hot=False)), False),
        ((LUN, LUN), (claim("a", hot=False), claim("b", hot=False)), False),
        (({**VIRTIO, "shareable": True},) * 2, (claim("a"), claim("b")), False),
        ((None, VIRTIO), (None, claim("a")), False),
        ((VIRTIO, VIRTIO), (claim("a"), {"name": "d", "emptyDisk": {}}), False),
    ],
)
def test_volumes_that_are_copied(disks: Any, volumes: Any, live: bool) -> None:
    assert disk_verdict(disks, volumes, room=True, copies=True).live is live


BRIDGE = {"name": "n", "bridge": {}}
MASQUERADE = {"name": "n", "masquerade": {}}
SRIOV = {"name": "n", "sriov": {}}
POD = {"name": "n", "pod": {}}
MULTUS = {"name": "n", "multus": {"networkName": "a"}}
OTHER = {"name": "n", "multus": {"networkName": "b"}}
DEFAULT = {"name": "n", "multus": {"networkName": "a", "default": True}}


@pytest.mark.parametrize(
    ("interfaces", "networks", "live", "why"),
    [
        ((None, BRIDGE), (None, MULTUS), True, "plugged in"),
        ((None, SRIOV), (None, MULTUS), True, "plugged in"),
        ((None, MASQUERADE), (None, MULTUS), False, "bridge or the sriov"),
        ((None, BRIDGE), (None, POD), False, "secondary"),
        ((None, {**BRIDGE, "state": "absent"}), (None, MULTUS), True, "absent"),
        ((BRIDGE, None), (MULTUS, None), False, "leaving it out"),
        ((BRIDGE, {**BRIDGE, "state": "absent"}), (MULTUS, MULTUS), True, "unplugged"),
        ((MASQUERADE, {**MASQUERADE, "state": "absent"}), (POD, POD), False, "unplugged"),
        ((BRIDGE, {**BRIDGE, "state": "absent"}), (DEFAULT, DEFAULT), False, "secondary"),
        ((BRIDGE, {**BRIDGE, "state": "down"}), (MULTUS, MULTUS), True, "set down"),
        (({**BRIDGE, "state": "down"}, BRIDGE), (MULTUS, MULTUS), True, "set up"),
        (({**BRIDGE, "state": "absent"}, BRIDGE), (MULTUS, MULTUS), False, "come back"),
        ((SRIOV, {**SRIOV, "state": "down"}), (MULTUS, MULTUS), False, "SR-IOV"),
        ((BRIDGE, {**BRIDGE, "model": "e1000"}), (MULTUS, MULTUS), False, "no other change"),
        ((BRIDGE, BRIDGE), (MULTUS, OTHER), True, "other network"),
        ((BRIDGE, BRIDGE), (MULTUS, POD), False, "same kind"),
    ],
)
def test_interfaces(interfaces: Any, networks: Any, live: bool, why: str) -> None:
    verdict = interface_verdict(interfaces, networks)
    assert verdict.live is live
    assert why in verdict.why
