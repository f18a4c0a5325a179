"""VMIs that somebody has tampered with: the domain that they ask for is made, or they are refused in one line."""

from __future__ import annotations

import copy
import json
from collections.abc import Iterator
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from kvnode.api.errors import FieldError
from kvnode.launcher.errors import LauncherError
from kvnode.launcher.manager.agent_store import AgentStore
from kvnode.launcher.manager.errors import ManagerError, describe
from kvnode.launcher.manager.host import Host
from kvnode.launcher.manager.instance import Instance
from kvnode.launcher.manager.metadata import MetadataCache
from kvnode.launcher.manager.options import ManagerOptions
from kvnode.launcher.manager.statistics import Statistics
from kvnode.launcher.manager.steps import Steps
from kvnode.launcher.manager.sync import Synchronizer
from kvnode.rpc.cmd_v1_pb2 import VirtualMachineOptions
from kvnode.virt.connection import Connection, Versions
from kvnode.virt.domain_json.errors import DomainFormatError

VMI: dict[str, Any] = {
    "metadata": {
        "name": "a",
        "namespace": "n",
        "uid": "u",
        "labels": {"l": "v"},
        "annotations": {"kubevirt.io/ignitiondata": "{}", "kubevirt.io/libvirt-log-filters": "1:*"},
    },
    "spec": {
        "domain": {
            "cpu": {"cores": 2, "model": "host-model", "features": [{"name": "apic", "policy": "require"}]},
            "memory": {"guest": "1Gi", "maxGuest": "4Gi"},
            "resources": {"requests": {"memory": "1Gi", "cpu": "500m"}, "limits": {"cpu": "2"}},
            "features": {"acpi": {}, "hyperv": {"relaxed": {"enabled": True}}, "kvm": {"hidden": True}},
            "firmware": {"uuid": "5d307ca9-b3ef-428c-8861-06e72d69f223", "serial": "s"},
            "clock": {"timezone": "UTC", "timer": {"hpet": {"present": False}}},
            "ioThreadsPolicy": "auto",
            "devices": {
                "disks": [
                    {
                        "name": "root",
                        "disk": {"bus": "virtio"},
                        "bootOrder": 1,
                        "cache": "none",
                        "serial": "1",
                    },
                    {"name": "cd", "cdrom": {"bus": "sata"}, "io": "native"},
                    {
                        "name": "init",
                        "disk": {"bus": "scsi"},
                        "tag": "t",
                        "blockSize": {"custom": {"logical": 512, "physical": 4096}},
                    },
                ],
                "interfaces": [
                    {
                        "name": "default",
                        "masquerade": {},
                        "ports": [{"port": 80}],
                        "macAddress": "02:00:00:00:00:01",
                    },
                    {"name": "more", "bridge": {}, "model": "e1000", "state": "down"},
                ],
                "inputs": [{"name": "tablet", "type": "tablet", "bus": "usb"}],
                "filesystems": [{"name": "shared", "virtiofs": {}}],
                "watchdog": {"name": "w", "i6300esb": {"action": "poweroff"}},
                "panicDevices": [{"model": "isa"}],
                "rng": {},
                "networkInterfaceMultiqueue": True,
            },
        },
        "networks": [{"name": "default", "pod": {}}, {"name": "more", "multus": {"networkName": "net"}}],
        "volumes": [
            {"name": "root", "persistentVolumeClaim": {"claimName": "c"}},
            {"name": "cd", "configMap": {"name": "m"}},
            {"name": "init", "cloudInitNoCloud": {"userData": "x"}},
            {"name": "shared", "hostDisk": {"path": "/d/disk.img", "type": "Disk", "capacity": "1Gi"}},
        ],
        "accessCredentials": [
            {
                "userPassword": {
                    "source": {"secret": {"secretName": "s"}},
                    "propagationMethod": {"qemuGuestAgent": {}},
                }
            }
        ],
        "terminationGracePeriodSeconds": 5,
        "startStrategy": "Paused",
    },
    "status": {
        "phase": "Running",
        "volumeStatus": [
            {"name": "root", "target": "vda", "persistentVolumeClaimInfo": {"volumeMode": "Block"}},
            {"name": "cd", "target": "sda"},
            {"name": "init", "target": "sdb"},
        ],
        "interfaces": [{"name": "default", "podInterfaceName": "eth0", "infoSource": "domain"}],
        "memory": {"guestAtBoot": "1Gi", "guestCurrent": "1Gi", "guestRequested": "2Gi"},
        "currentCPUTopology": {"cores": 2, "sockets": 1, "threads": 1},
    },
}

#: What a field is made that may be anything.
ODD: list[Any] = [
    *(
        None,
        True,
        0,
        -1,
        1 << 70,
        1.5,
        "",
        "/",
        "..",
        "../../etc/passwd",
        "x" * 5000,
        "\0",
        "\n\r",
        "\ud800",
        "é漢",
    ),
    *("-1", "1e99999", "999999999999Ti", "-5Mi", "0x10", "<&>'\"", "]]>", "{}", "%s%n", "true", "null"),
    *([], {}, [None], [{}], [[]], {"name": None}, {"a": {"b": [1]}}),
]


def places(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """The paths of all that is in a value."""
    entries = (
        value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    )
    for key, part in entries:
        yield (*path, key)
        yield from places(part, (*path, key))


@st.composite
def tampered(draw: st.DrawFn) -> bytes:
    """A VMI as JSON of which one to three fields are something else, are missing, or are there twice."""
    vmi = copy.deepcopy(VMI)
    for _ in range(draw(st.integers(1, 3))):
        *path, key = draw(st.sampled_from(sorted(places(vmi), key=repr)))
        parent: Any = vmi
        for step in path:
            parent = parent[step]
        match draw(st.sampled_from(("odd", "odd", "odd", "missing", "twice"))):
            case "odd":
                parent[key] = copy.deepcopy(draw(st.sampled_from(ODD)))
            case "missing":
                del parent[key]
            case "twice" if isinstance(parent, list):
                parent.append(copy.deepcopy(parent[key]))
    return json.dumps(vmi).encode()


class Libvirt(Connection):
    """No libvirt, of a version."""

    def __init__(self) -> None:
        super().__init__("", lambda *_: None, lambda: None)

    @property
    def raw(self) -> Any:
        return self

    def versions(self) -> Versions:
        return Versions(9_000_000, 7_002_022)


def synchronizer() -> Synchronizer:
    """What turns VMIs into domains."""
    options = ManagerOptions("n", "a", "u", allow_emulation=True, kvm=False)
    host = Host(Libvirt(), options, MetadataCache())
    return Synchronizer(host, Statistics(host, AgentStore()), Steps())


SYNCHRONIZER = synchronizer()
OPTIONS = VirtualMachineOptions(MemBalloonStatsPeriod=10)


def test_the_vmi_itself_is_taken() -> None:
    domain = SYNCHRONIZER.wanted(Instance.read(json.dumps(VMI).encode()), OPTIONS)
    assert len(domain.findall("devices/disk")) == 3


@settings(max_examples=300, deadline=None)
@given(tampered())
def test_a_tampered_vmi_is_taken_or_refused_in_one_line(data: bytes) -> None:
    try:
        vmi = Instance.read(data)
        assert vmi.grace_seconds is not None
        assert isinstance(vmi.vcpus(), int)
        domain = SYNCHRONIZER.wanted(vmi, OPTIONS)
    except (DomainFormatError, ManagerError, LauncherError, FieldError) as error:
        told = describe(error)
        assert told.encode()
        assert "\n" not in told
        assert len(told) <= 1001
    else:
        assert domain.tag == "domain"
