"""Some twenty guests that really boot in QEMU through libvirt, one a feature, each asked what it sees of it."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import libvirt
import pytest

from tests.conftest import Guest
from tests.virt.daemon import LibvirtHost
from tests.virt.machine import Machine, assert_matches

pytestmark = pytest.mark.integration


@pytest.fixture(scope="module")
def host() -> Iterator[LibvirtHost]:
    made = LibvirtHost()
    yield made
    made.close()


Boot = Callable[..., Machine]


@pytest.fixture
def boot(host: LibvirtHost, guest: Guest) -> Iterator[Boot]:
    """Boots guests and ends them with the test."""
    running: list[Machine] = []

    def start(name: str, fragment: Mapping[str, Any], **context: Any) -> Machine:
        running.append(Machine(host, guest, name, fragment, **context))
        return running[-1]

    yield start
    for machine in running:
        machine.close()


@dataclass(frozen=True)
class Feature:
    """A VMI, and what its guest shows."""

    name: str
    spec: Mapping[str, Any]
    log: Sequence[str] = ()
    """Patterns in the serial log."""

    seen: Mapping[str, str] = field(default_factory=dict)
    """Command in the guest -> pattern in its output."""

    metadata: Mapping[str, Any] = field(default_factory=dict)


def disks(*disks: dict[str, Any], **domain: Any) -> dict[str, Any]:
    """A spec with these disks, on empty disks unless they say otherwise."""
    volumes = [
        {"name": disk["name"], **disk.pop("volume", {"emptyDisk": {"capacity": "8Mi"}})} for disk in disks
    ]
    domain.setdefault("devices", {})["disks"] = list(disks)
    return {"domain": domain, "volumes": volumes}


def devices(**devices: Any) -> dict[str, Any]:
    return {"domain": {"devices": devices}}


CLAIM = {"persistentVolumeClaim": {"claimName": "c"}}
PCI_CLASSES = "cat /sys/bus/pci/devices/*/class"

FEATURES = (
    Feature(
        "virtio-disks",
        disks(
            {"name": "a", "disk": {"bus": "virtio"}, "serial": "S3R1AL"},
            {"name": "b", "disk": {"bus": "virtio", "readonly": True}, "volume": CLAIM},
        ),
        log=[r"disk vda 8388608 bytes, serial S3R1AL$", r"disk vdb 8388608 bytes, read only"],
    ),
    Feature(
        "scsi-disk",
        disks({"name": "a", "disk": {"bus": "scsi"}, "volume": CLAIM}),
        log=[r"disk sda 8388608 bytes"],
        seen={"cat /sys/class/scsi_host/*/proc_name": "virtio_scsi"},
    ),
    Feature(
        "usb-tablet",
        devices(inputs=[{"name": "t", "type": "tablet", "bus": "usb"}]),
        seen={PCI_CLASSES: "0x0c0330"},  # the xHCI controller: the guest has no driver for USB
    ),
    Feature(
        "block-size",
        disks(
            {
                "name": "a",
                "disk": {"bus": "virtio"},
                "blockSize": {"custom": {"logical": 4096, "physical": 4096}},
            }
        ),
        seen={
            "cat /sys/block/vda/queue/logical_block_size /sys/block/vda/queue/physical_block_size": "4096\n4096"
        },
    ),
    Feature(
        "block-multiqueue",
        disks({"name": "a", "disk": {"bus": "virtio"}}, cpu={"cores": 2}, devices={"blockMultiQueue": True}),
        seen={"ls /sys/block/vda/mq | wc -l": "^2$"},
    ),
    Feature("hyperv-off", {"domain": {"features": {"hyperv": {"relaxed": {"enabled": False}}}}}),
    # Those that software emulation lets be.
    Feature("hyperv", {"domain": {"features": {"hyperv": {"relaxed": {}, "vapic": {}, "spinlocks": {}}}}}),
    Feature(
        "cpu-topology-and-features",
        {
            "domain": {
                "cpu": {
                    "model": "qemu64",
                    "sockets": 1,
                    "cores": 2,
                    "threads": 1,
                    "features": [
                        {"name": "sse4.2", "policy": "disable"},
                        {"name": "ssse3", "policy": "require"},
                    ],
                }
            }
        },
        seen={
            "grep -m1 flags /proc/cpuinfo": r"\bssse3\b",
            "nproc; grep -m1 'cpu cores' /proc/cpuinfo": r"^2\n.*: 2$",
        },
    ),
    Feature(
        "efi",
        {
            "domain": {
                "memory": {"guest": "256Mi"},
                "firmware": {"bootloader": {"efi": {"secureBoot": False}}},
            }
        },
        log=[r"UEFI boot$"],
    ),
    Feature(
        "older-machine-type",
        {"domain": {"machine": {"type": "pc"}}},
        seen={"cat /sys/bus/pci/devices/0000:00:00.0/device": "^0x1237$"},  # the i440FX bridge
    ),
    Feature("tpm", devices(tpm={}), log=[r"tpm 2$"]),
    Feature(
        "watchdog-rng-sound",
        devices(
            watchdog={"name": "w", "i6300esb": {"action": "reset"}},
            rng={},
            sound={"name": "s", "model": "ich9"},
        ),
        seen={
            "cat /sys/class/misc/hw_random/rng_current": r"virtio_rng\.0",
            "ls /sys/class/watchdog/*/device/driver /dev/watchdog0": r"/dev/watchdog0",
            PCI_CLASSES: "0x040300",
        },
    ),
    Feature(
        "graphics",
        devices(autoattachGraphicsDevice=True),
        seen={PCI_CLASSES: "0x030000"},
    ),
    Feature(
        "root-complex",
        disks({"name": "a", "disk": {"bus": "virtio"}}),
        metadata={"annotations": {"kubevirt.io/placePCIDevicesOnRootComplex": "true"}},
        seen={"ls /sys/bus/pci/devices | cut -c1-7 | sort -u": r"^0000:00$"},
    ),
    Feature(
        "strings-of-the-firmware",
        {
            "domain": {
                "chassis": {"manufacturer": "A&B <c>", "asset": "q\"uote'", "sku": "k1"},
                "firmware": {"uuid": "11111111-2222-3333-4444-555555555555", "serial": "two words"},
            }
        },
        seen={
            "cd /sys/class/dmi/id; cat chassis_vendor chassis_asset_tag": "^A&B <c>\nq\"uote'$",
            "cat /sys/class/dmi/id/product_uuid": "^11111111-2222-3333-4444-555555555555$",
            "cat /sys/class/dmi/id/product_serial": "^two words$",
            "cat /sys/class/dmi/id/sys_vendor": "^KubeVirt$",
        },
    ),
    Feature(
        "kernel-arguments",
        {
            "domain": {
                "firmware": {
                    "kernelBoot": {
                        "kernelArgs": 'console=ttyS0 quiet a="b&c" <x>',
                        "container": {
                            "image": "kernel",
                            "kernelPath": "/vmlinuz",
                            "initrdPath": "/initrd.gz",
                        },
                    }
                }
            }
        },
        seen={"cat /proc/cmdline": 'console=ttyS0 quiet a="b&c" <x>'},
    ),
    Feature(
        "interface",
        devices(
            interfaces=[
                {
                    "name": "default",
                    "masquerade": {},
                    "macAddress": "02:00:00:00:00:07",
                    "pciAddress": "0000:06:00.0",
                }
            ]
        ),
        log=[r"nic eth0 02:00:00:00:00:07"],
        seen={
            "readlink -f /sys/class/net/eth0/device": "/0000:06:00.0/virtio",
            "sleep 2; ip -4 addr show eth0": r"10\.0\.2\.15",
        },
    ),
    Feature(
        "interface-of-intel",
        devices(interfaces=[{"name": "default", "masquerade": {}, "model": "e1000e"}]),
        seen={"cat /sys/bus/pci/devices/*/device": "0x10d3"},  # the guest has no driver for it
    ),
    Feature(
        "agent-and-metrics-channels",
        devices(downwardMetrics={}),
        seen={
            "cat /sys/class/virtio-ports/*/name": r"org\.qemu\.guest_agent\.0(.|\n)*org\.github\.vhostmd\.1"
        },
    ),
)


@pytest.mark.parametrize("feature", FEATURES, ids=lambda feature: feature.name)
def test_a_guest_boots_and_sees(feature: Feature, boot: Boot) -> None:
    machine = boot(feature.name, {"metadata": feature.metadata, "spec": feature.spec})
    for pattern in feature.log:
        assert_matches(pattern, machine.log().replace("\r", ""))
    for command, pattern in feature.seen.items():
        assert_matches(pattern, machine.run(command))


@pytest.mark.parametrize("bus", ["sata", "usb"])
def test_a_guest_boots_from_a_disk(bus: str, boot: Boot, guest: Guest) -> None:
    """The guest has no driver for these disks: its firmware has, and loads kernel and initrd from them."""
    spec = disks(
        {"name": "root", "disk": {"bus": bus}, "bootOrder": 1, "volume": CLAIM},
        {"name": "cd", "cdrom": {"bus": "sata"}, "volume": CLAIM},
        memory={"guest": "192Mi"},
        firmware={"kernelBoot": None},
    )
    machine = boot(f"disk-{bus}", {"spec": spec}, image=guest.disk)
    assert_matches("BIOS or direct boot$", machine.log().replace("\r", ""))
    assert_matches("^0x010601$", machine.run(PCI_CLASSES))


def test_io_threads(boot: Boot) -> None:
    spec = disks(
        *({"name": name, "disk": {"bus": "virtio"}, "dedicatedIOThread": name == "a"} for name in "abc"),
        ioThreadsPolicy="auto",
        cpu={"cores": 2},
    )
    machine = boot("io-threads", {"spec": spec})
    threads = sorted(thread[0] for thread in machine.domain.ioThreadInfo())
    assert threads == list(range(1, len(threads) + 1))
    used = set(re.findall(r"iothread=['\"](\d+)", machine.domain.XMLDesc()))
    assert used == {str(thread) for thread in threads}
    assert_matches("^3$", machine.run("ls -d /sys/block/vd? | wc -l"))


def test_a_pool_of_io_threads(boot: Boot) -> None:
    spec = disks(
        *({"name": name, "disk": {"bus": "virtio"}} for name in "abc"),
        ioThreadsPolicy="supplementalPool",
        ioThreads={"supplementalPoolThreadCount": 2},
    )
    machine = boot("io-thread-pool", {"spec": spec})
    assert len(machine.domain.ioThreadInfo()) == 2
    assert_matches("^3$", machine.run("ls -d /sys/block/vd? | wc -l"))


def test_a_socket_is_plugged_in(boot: Boot) -> None:
    """Linux takes it; from 6.9 on only under hypervisors that it knows, of which emulation is none."""
    cpu = {"model": "qemu64", "sockets": 1, "maxSockets": 2}
    machine = boot("hotplug-cpu", {"spec": {"domain": {"cpu": cpu}}})
    assert machine.run("nproc") == "1"
    machine.domain.setVcpus(2)
    assert machine.domain.vcpusFlags(libvirt.VIR_DOMAIN_AFFECT_LIVE) == 2
    noticed = (
        "echo 1 2>/dev/null >/sys/devices/system/cpu/cpu1/online; "
        "{ [ $(nproc) = 2 ] || dmesg | grep -q 'Unable to map lapic'; } && echo noticed"
    )
    assert wait_for(lambda: machine.run(noticed), "noticed") == "noticed"


def test_memory_of_which_more_may_come(boot: Boot) -> None:
    machine = boot("max-memory", {"spec": {"domain": {"memory": {"guest": "1Gi", "maxGuest": "4Gi"}}}})
    total = int(machine.run("awk '/^MemTotal/{print $2}' /proc/meminfo"))
    assert 900 << 10 < total < 1 << 20


def test_the_balloon_gives_memory_back(boot: Boot) -> None:
    machine = boot("balloon", {})
    machine.domain.setMemory(112 << 10)
    actual = wait_for(lambda: machine.domain.memoryStats()["actual"], 112 << 10)
    assert actual == 112 << 10
    machine.domain.setMemory(128 << 10)


def test_the_clock_is_set_off(boot: Boot) -> None:
    day = 24 * 3600
    machine = boot(
        "clock", {"spec": {"domain": {"clock": {"utc": {"offsetSeconds": day}, "timer": {"rtc": {}}}}}}
    )
    ahead = int(machine.run("cat /sys/class/rtc/rtc0/since_epoch")) - time.time()
    assert abs(ahead - day) < 120


def test_a_guest_with_cpus_of_its_own(boot: Boot) -> None:
    cpu = {"model": "qemu64", "cores": 2, "sockets": 1, "threads": 1, "dedicatedCpuPlacement": True}
    cells = [{"id": 0, "cpus": [{"id": n, "siblings": [n]} for n in range(2)]}]
    machine = boot(
        "pinned", {"spec": {"domain": {"cpu": cpu}}}, cpuSet=[0, 1], topology={"numa_cells": cells}
    )
    pinned = [tuple(index for index, on in enumerate(cpus) if on) for cpus in machine.domain.vcpuPinInfo()]
    assert pinned == [(0,), (1,)]
    assert machine.run("nproc") == "2"


def test_a_panic_device(boot: Boot) -> None:
    """On PCI, or on ISA where libvirt does not know that model."""
    machine = boot("panic", {"spec": devices(panicDevices=[{"model": "pvpanic"}])})
    seen = machine.run("cat /sys/bus/pci/devices/*/device; ls -1 /sys/bus/acpi/devices")
    assert_matches("^0x0011$|^QEMU0001", seen)


@pytest.mark.skipif(not Path("/dev/vhost-vsock").exists(), reason="this kernel has no vsock for guests")
def test_a_vsock_device(boot: Boot) -> None:
    machine = boot("vsock", {"spec": devices(autoattachVSOCK=True), "status": {"VSOCKCID": 4711}})
    assert_matches("0x1053|0x1012", machine.run("cat /sys/bus/pci/devices/*/device"))


def wait_for(read: Callable[[], Any], wanted: Any, seconds: float = 120.0) -> Any:
    """What `read` gives in the end: the value wanted, or the last one when time is up."""
    end = time.monotonic() + seconds
    while True:
        value = read()
        if value == wanted or time.monotonic() > end:
            return value
        time.sleep(0.2)
