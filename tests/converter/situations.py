"""VMIs and values that show what fields do which the committed reference cases leave out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from tests.fast.helpers import MINIMAL_CONTEXT, MINIMAL_VMI, merged


def _situation(fragment: Mapping[str, Any], **context: Any) -> tuple[dict[str, Any], dict[str, Any]]:
    return merged(MINIMAL_VMI, fragment), merged(MINIMAL_CONTEXT, context)


def _devices(**devices: Any) -> dict[str, Any]:
    return {"domain": {"devices": devices}}


def _volume(**source: Any) -> dict[str, Any]:
    return _devices(disks=[{"name": "v", "disk": {"bus": "virtio"}}]) | {"volumes": [{"name": "v", **source}]}


_CLAIMED = {
    "claim-a": {"one": {"pciBusID": "0000:41:00.0"}, "two": {"pciBusID": "0000:42:00.0"}},
    "claim-b": {"one": {"pciBusID": "0000:43:00.0"}},
}
_TWO_NETWORKS = [{"name": "one", "pod": {}}, {"name": "two", "multus": {"networkName": "x"}}]
_CLAIM_STATUS = {
    "name": "v",
    "persistentVolumeClaimInfo": {
        "filesystemOverhead": "0.06",
        "requests": {"storage": "2Gi"},
        "capacity": {"storage": "3Gi"},
    },
}

SITUATIONS: Sequence[tuple[dict[str, Any], dict[str, Any]]] = (
    _situation({}),
    _situation({"spec": {"domain": {"cpu": None, "memory": None}}}),
    _situation({"spec": {"domain": {"cpu": None, "memory": None, "resources": None}}}),
    _situation(
        {
            "spec": {
                "domain": {"firmware": {"acpi": {"slicNameRef": "slic", "msdmNameRef": "msdm"}}},
                "volumes": [{"name": name, "secret": {"secretName": name}} for name in ("slic", "msdm")],
            }
        }
    ),
    _situation(
        {"spec": _devices(interfaces=[{"name": "one", "masquerade": {}}]) | {"networks": _TWO_NETWORKS}},
        domainAttachmentByInterface={"one": "tap", "two": "tap"},
    ),
    _situation(
        {"spec": _devices(interfaces=[{"name": "one", "sriov": {}}]) | {"networks": _TWO_NETWORKS}},
        networkInfo={
            "interfaces": [
                {"network": name, "deviceInfo": {"pci": {"pci-address": f"0000:4{i}:00.0"}}}
                for i, name in enumerate(("one", "two"))
            ]
        },
    ),
    _situation(
        {
            "spec": _devices(interfaces=[{"name": "one", "sriov": {}}])
            | {"networks": [{"name": "one", "resourceClaim": {"claimName": "claim-a", "requestName": "one"}}]}
        },
        resourceClaims=_CLAIMED,
    ),
    *(
        _situation(
            {
                "spec": _devices(interfaces=[{"name": "one", "sriov": {}}]) | {"networks": [{"name": "one"}]},
                "status": {"interfaces": [reported]},
            }
        )
        for reported in ({"name": "one"}, {"infoSource": "multus-status"})
    ),
    *(
        _situation({"spec": _devices(**{kind: [{"name": "g", **wanted}]})}, resourceClaims=_CLAIMED, env=env)
        for kind in ("gpus", "hostDevices")
        for wanted, env in (
            ({"claimName": "claim-a", "requestName": "one"}, {}),
            (
                {"deviceName": "example.org/a"},
                {"PCI_RESOURCE_EXAMPLE_ORG_A": "0000:41:00.0", "PCI_RESOURCE_EXAMPLE_ORG_B": "0000:42:00.0"},
            ),
        )
    ),
    _situation({"spec": _devices(inputs=[{"name": "i", "type": "tablet", "bus": "virtio"}])}),
    _situation({"spec": _volume(downwardMetrics={})}),
    _situation(
        {
            "spec": _volume(persistentVolumeClaim={"claimName": "c"}),
            "status": {"volumeStatus": [_CLAIM_STATUS]},
        }
    ),
)

REFERENCES = frozenset(
    {
        "spec.networks[].name",
        "spec.domain.devices.inputs[].type",
        "spec.volumes[].downwardMetrics",
        "status.interfaces[].infoSource",
        "status.interfaces[].name",
    }
)
"""Fields of which only one value fits the rest of the VMI: any other is refused."""

VALUES: Mapping[str, Sequence[Any]] = {
    # by path
    "metadata.annotations": (
        {"some": "other"},
        {"kubevirt.io/placePCIDevicesOnRootComplex": "true"},
    ),
    "spec.architecture": ("amd64", "s390x"),
    "spec.domain.devices.interfaces[].model": ("virtio", "e1000"),
    "spec.domain.devices.interfaces[].name": ("one", "two"),
    "spec.domain.devices.interfaces[].ports[].protocol": ("TCP", "UDP"),
    "spec.domain.devices.interfaces[].state": ("up", "down"),
    "spec.domain.devices.panicDevices[].model": ("isa", "pvpanic"),
    "spec.domain.devices.sound.model": ("ich9", "ac97"),
    "spec.domain.devices.video.type": ("virtio", "vga"),
    "spec.domain.devices.inputs[].type": ("tablet", "keyboard"),
    "spec.domain.resources.requests": ({"cpu": "3"}, {"memory": "3Gi"}),
    "spec.domain.resources.limits": ({"cpu": "3"}, {"memory": "3Gi"}),
    "spec.startStrategy": ("Paused",),
    "status.interfaces[].name": ("one", "two"),
    "spec.volumes[].hostDisk.path": ("/one/disk.img", "/one/other.img"),
    "status.volumeStatus[].persistentVolumeClaimInfo.capacity": ({"storage": "1Gi"}, {"storage": "3Gi"}),
    "status.volumeStatus[].persistentVolumeClaimInfo.filesystemOverhead": ("0.05", "0.06"),
    "status.volumeStatus[].persistentVolumeClaimInfo.requests": ({"storage": "1Gi"}, {"storage": "3Gi"}),
    # by name
    "action": ("reset", "poweroff"),
    "bus": ("virtio", "sata", "scsi", "usb"),
    "cache": ("none", "writeback"),
    "claimName": ("claim-a", "claim-b"),
    "deviceName": ("example.org/a", "example.org/b"),
    "errorPolicy": ("stop", "ignore"),
    "infoSource": ("domain", "multus-status"),
    "io": ("native", "threads"),
    "ioThreadsPolicy": ("auto", "shared", "supplementalPool"),
    "macAddress": ("02:00:00:00:00:01", "02:00:00:00:00:02"),
    "msdmNameRef": ("slic", "msdm"),
    "pageSize": ("2Mi", "1Gi"),
    "pciAddress": ("0000:05:00.0", "0000:06:00.0"),
    "policy": ("require", "disable"),
    "requestName": ("one", "two"),
    "slicNameRef": ("slic", "msdm"),
    "tickPolicy": ("delay", "catchup"),
    "timezone": ("Europe/Berlin", "UTC"),
    "track": ("guest", "wall"),
    "tray": ("open", "closed"),
}
"""Values that tell, by a field's path or by its name; other fields take plain ones of their type."""
