"""When two specs are the same; what changes are admitted is asked of the webhooks."""

from __future__ import annotations

from typing import Any

import pytest

from kvnode.api.errors import FieldError
from kvnode.spec.validation.update import hotplug_disk_fault, same_spec


@pytest.mark.parametrize(
    ("new", "old", "same"),
    [
        ({}, {}, True),
        ({"tolerations": []}, {}, True),
        ({"tolerations": None}, {}, True),
        ({"domain": {"memory": {"guest": "1Gi"}}}, {"domain": {"memory": {"guest": "1024Mi"}}}, True),
        ({"domain": {"cpu": {"dedicatedCpuPlacement": False}}}, {"domain": {"cpu": {}}}, True),
        ({"domain": {"memory": {"guest": "1Gi"}}}, {"domain": {"memory": {"guest": "1G"}}}, False),
        ({"domain": {"devices": {"rng": {}}}}, {"domain": {"devices": {}}}, False),
        ({"hostname": "a"}, {}, False),
    ],
)
def test_same_spec(new: dict[str, Any], old: dict[str, Any], same: bool) -> None:
    assert same_spec({"spec": new}, {"spec": old}) is same
    assert same_spec({"spec": old}, {"spec": new}) is same


def test_what_is_no_spec_is_named() -> None:
    with pytest.raises(FieldError) as error:
        same_spec({"spec": {"hostname": 1}}, {"spec": {}})
    assert error.value.field == "spec.hostname"


@pytest.mark.parametrize(
    ("disk", "fault"),
    [
        ({"disk": {"bus": "virtio"}}, None),
        ({"disk": {"bus": "scsi"}, "bootOrder": 1}, None),
        ({"disk": {}}, "has the bus ''"),
        ({"lun": {"bus": "virtio"}}, "must be scsi"),
        ({"cdrom": {"bus": "scsi"}}, "must be a disk or lun"),
        ({"disk": {"bus": "scsi"}, "dedicatedIOThread": True}, "needs the bus virtio"),
        ({"disk": {"bus": "scsi"}, "bootOrder": 0}, "bootOrder below 1"),
    ],
)
def test_disks_to_plug(disk: dict[str, Any], fault: str | None) -> None:
    found = hotplug_disk_fault(disk)
    assert (found is None) if fault is None else (found is not None and fault in found)
