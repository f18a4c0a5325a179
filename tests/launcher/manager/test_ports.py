"""Free PCI ports of a domain."""

from __future__ import annotations

import json
import xml.etree.ElementTree as ET

import pytest

from kvnode.launcher.manager import ports
from kvnode.launcher.manager.errors import ManagerError
from kvnode.launcher.manager.instance import Instance


def instance(interfaces=1, machine=None, architecture=None, **annotations):
    domain = {"devices": {"interfaces": [{"name": f"n{i}", "bridge": {}} for i in range(interfaces)]}}
    if machine is not None:
        domain["machine"] = {"type": machine}
    spec = {"domain": domain}
    if architecture:
        spec["architecture"] = architecture
    return Instance.read(json.dumps({"metadata": {"annotations": annotations}, "spec": spec}).encode())


DOMAIN = """<domain type='kvm'><name>n_a</name><memory unit='b'>{memory}</memory><devices>
<interface type='ethernet'><model type='virtio-transitional'/><alias name='ua-n0'/></interface>
<disk><target dev='vda' bus='virtio'/></disk><disk><target dev='sda' bus='sata'/></disk>
<controller type='scsi' model='virtio-non-transitional'/><controller type='pci' model='pcie-root'/>
<input type='tablet' bus='virtio'/><input type='tablet' bus='usb'/><rng/><memballoon model='virtio'/><watchdog/>
<hostdev type='pci'/><hostdev type='usb'/><memballoon><address type='ccw'/></memballoon>
</devices><metadata><mine/></metadata></domain>"""
DEVICES = 8


class Libvirt:
    """Gives each device that needs one a port of its own, as libvirt does."""

    def __init__(self):
        self.defined = []

    def define(self, text):
        self.defined.append(ET.fromstring(text))
        made = ET.fromstring(text)
        devices = made.find("devices")
        have = len(devices.findall("controller[@model='pcie-root-port']"))
        for number in range(have, ports.pci_devices(made)):
            ET.SubElement(
                devices, "controller", {"type": "pci", "index": str(number + 1), "model": "pcie-root-port"}
            )
        made.remove(made.find("metadata"))
        return ET.tostring(made, encoding="unicode")


class TestWhere:
    @pytest.mark.parametrize(
        ("one", "has"),
        [
            (instance(), True),
            (instance(machine="pc-q35-rhel9"), True),
            (instance(machine="virt-8", architecture="arm64"), True),
            (instance(machine="pc-i440fx"), False),
            (instance(machine=""), False),
            (instance(architecture="s390x"), False),
        ],
    )
    def test_machines(self, one, has):
        assert ports.has_ports(one) is has

    @pytest.mark.parametrize(("interfaces", "count"), [(0, 0), (1, 3), (4, 0), (6, 0)])
    def test_room_for_four_interfaces(self, interfaces, count):
        assert ports.placeholder_count(instance(interfaces)) == count

    def test_room_as_a_frozen_count_says(self):
        slots = "kubevirt.io/pci-interface-slot-count"
        assert ports.placeholder_count(instance(2, **{slots: "7"})) == 5
        assert ports.placeholder_count(instance(2, **{slots: "1"})) == 0
        assert ports.placeholder_count(instance(2, **{slots: "99999999999"})) == ports.MOST_PORTS
        with pytest.raises(ManagerError, match="must be a number, is 'many'"):
            ports.placeholder_count(instance(2, **{slots: "many"}))

    def test_none_where_devices_are_on_the_root(self):
        assert (
            ports.placeholder_count(instance(1, **{"kubevirt.io/placePCIDevicesOnRootComplex": "true"})) == 0
        )

    def test_devices_that_take_a_port(self):
        assert ports.pci_devices(ET.fromstring(DOMAIN.format(memory=1))) == DEVICES

    @pytest.mark.parametrize(("memory", "free"), [(2 << 30, 3), ((2 << 30) + 1, 16 - DEVICES)])
    def test_large_guests_have_more(self, memory, free):
        assert ports.free_ports(ET.fromstring(DOMAIN.format(memory=memory))) == free


class TestDefine:
    def test_interfaces_that_nobody_has_leave_their_ports(self):
        libvirt = Libvirt()
        ports.define_with_ports(instance(), DOMAIN.format(memory=4 << 30), libvirt.define)
        first, second = libvirt.defined
        placeholders = [one for one in first.iterfind("devices/interface") if one.find("target") is not None]
        assert [one.find("target").get("dev") for one in placeholders] == [
            f"placeholder-{i}" for i in range(3)
        ]
        assert {one.find("model").get("type") for one in placeholders} == {"virtio-transitional"}
        assert len(second.findall("devices/interface")) == 1
        ports_made = second.findall("devices/controller[@model='pcie-root-port']")
        assert len(ports_made) - DEVICES == 16 - DEVICES, "as many free as asked for"
        assert [int(port.get("index")) for port in ports_made] == list(range(1, len(ports_made) + 1))

    def test_all_but_the_devices_stays_as_asked(self):
        libvirt = Libvirt()
        ports.define_with_ports(instance(), DOMAIN.format(memory=1), libvirt.define)
        assert libvirt.defined[-1].find("metadata/mine") is not None
        assert [child.tag for child in libvirt.defined[-1]] == ["name", "memory", "devices", "metadata"]

    def test_ports_end_at_the_last_index(self):
        defined = []

        def define(text):
            defined.append(ET.fromstring(text))
            return text

        pci = "".join(f"<controller type='pci' index='{i}' model='pcie-root-port'/>" for i in range(1, 31))
        wanted = DOMAIN.format(memory=1).replace("<rng/>", pci)
        ports.define_with_ports(instance(4), wanted, define)
        indexes = [int(one.get("index", 0)) for one in defined[-1].iterfind("devices/controller")]
        assert max(indexes) == ports.MOST_PORTS
        assert ports.free_ports(ET.fromstring(wanted)) > 1, "more were asked for"

    def test_a_machine_without_ports_is_defined_once(self):
        libvirt = Libvirt()
        ports.define_with_ports(instance(machine="pc"), DOMAIN.format(memory=1), libvirt.define)
        assert len(libvirt.defined) == 1


@pytest.mark.parametrize(
    ("number", "unit", "size"),
    [
        ("2", "GiB", 2 << 30),
        (" 3 ", None, 3 << 10),
        ("4", "b", 4),
        ("x", "b", 0),
        (None, None, 0),
        ("5", "?", 5),
    ],
)
def test_amounts(number, unit, size):
    assert ports.bytes_of(number, unit) == size
