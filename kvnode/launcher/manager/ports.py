"""Free PCI ports, so that disks and interfaces can be plugged into a running guest.

PCI Express has one device a port, and ports cannot be added while a guest runs
(``pkg/virt-launcher/virtwrap/manager.go:120``, ``:1655``, ``:2944``). So the domain is defined with
interfaces that nobody has, libvirt gives each a port, and the domain is defined again without them but with
what libvirt added; ports for other devices follow behind.
"""

from __future__ import annotations

import copy
import xml.etree.ElementTree as ET
from collections.abc import Callable

from kvnode.launcher.manager.errors import ManagerError
from kvnode.launcher.manager.instance import Instance
from kvnode.launcher.manager.xml import parse, text

#: Guest memory in bytes above which more ports are kept.
LARGE_MEMORY = 2 << 30
#: Ports in all, and at least so many free; for small and for large guests.
_SMALL, _LARGE = (8, 3), (16, 6)
#: Highest index of a PCI controller: a root port takes one of the 32 slots of the root bus.
MOST_PORTS = 31
_V1_PLACEHOLDERS = 4
_SLOTS = "kubevirt.io/pci-interface-slot-count"
_ON_ROOT = "kubevirt.io/placePCIDevicesOnRootComplex"
_UNITS = {"b": 1, "bytes": 1, "KiB": 1 << 10, "k": 1 << 10, "MiB": 1 << 20, "GiB": 1 << 30, "TiB": 1 << 40}

#: ``define(xml)`` defines a domain and returns the XML that libvirt made of it (inactive).
Define = Callable[[str], str]


def define_with_ports(vmi: Instance, domain: str, define: Define) -> None:
    """Define ``domain`` with free ports, where its machine has ports; raises what ``define`` raises."""
    if not has_ports(vmi):
        define(domain)
        return
    wanted = parse(domain)
    placeholders = placeholder_count(vmi)
    extra = 0
    if vmi.annotations.get(_ON_ROOT) != "true":
        extra = max(0, free_ports(wanted) - placeholders)
    if placeholders == 0 and extra == 0:
        define(domain)
        return
    first = copy.deepcopy(wanted)
    _add_placeholders(first, placeholders)
    devices = parse(define(text(first))).find("devices")
    if devices is None:
        raise ManagerError("libvirt made a domain without devices")
    _remove_placeholders(devices)
    _add_ports(devices, extra)
    old = wanted.find("devices")
    if old is not None:  # all but the devices stays as it was asked for
        wanted.insert(list(wanted).index(old), devices)
        wanted.remove(old)
    define(text(wanted))


def has_ports(vmi: Instance) -> bool:
    """Whether the VMI's machine is one of PCI Express (``pkg/defaults/defaults.go:385``)."""
    if (vmi.spec.get("architecture") or "amd64") not in ("amd64", "arm64"):
        return False
    machine = vmi.domain.get("machine")
    kind = "q35" if machine is None else str(machine.get("type") or "")
    return "q35" in kind or kind.startswith("virt")


def placeholder_count(vmi: Instance) -> int:
    """How many interfaces more than the VMI has there is to be room for.

    Raises:
        ManagerError: the annotation that says so is no number.
    """
    interfaces = len(vmi.devices.get("interfaces") or [])
    slots = vmi.annotations.get(_SLOTS)
    if slots is not None:
        if not slots.lstrip("+-").isdecimal():
            raise ManagerError(f"metadata.annotations: {_SLOTS} must be a number, is {slots[:40]!r}")
        return min(max(0, int(slots) - interfaces), MOST_PORTS)
    if vmi.annotations.get(_ON_ROOT) == "true" or interfaces == 0:
        return 0
    return max(0, _V1_PLACEHOLDERS - interfaces)


def free_ports(domain: ET.Element) -> int:
    """How many ports are to be free in all, by the guest's memory and its devices."""
    total, least = _LARGE if _memory(domain) > LARGE_MEMORY else _SMALL
    return max(total - pci_devices(domain), least)


def pci_devices(domain: ET.Element) -> int:
    """Devices that take a PCI address (``pkg/virt-launcher/virtwrap/converter/pci-placement.go:42``)."""
    count = 0
    for device in domain.iterfind("devices/*"):
        address = device.find("address")
        if address is None or address.get("type", "") in ("", "pci"):
            count += _is_pci(device)
    return count


def _is_pci(device: ET.Element) -> bool:
    match device.tag:
        case "interface" | "watchdog" | "rng" | "memballoon":
            return True
        case "hostdev":
            return device.get("type") == "pci"
        case "controller":
            return device.get("model") not in ("pci-root", "pcie-root", "pcie-expander-bus")
        case "disk":
            target = device.find("target")
            return target is not None and target.get("bus") == "virtio"
        case "input":
            return device.get("bus") == "virtio"
    return False


def _memory(domain: ET.Element) -> int:
    memory = domain.find("memory")
    return 0 if memory is None else bytes_of(memory.text, memory.get("unit"))


def bytes_of(number: str | None, unit: str | None) -> int:
    """An amount of memory as libvirt writes it, in bytes; 0 for none."""
    digits = (number or "").strip()
    return int(digits) * _UNITS.get(unit or "KiB", 1) if digits.isdecimal() else 0


def _add_placeholders(domain: ET.Element, count: int) -> None:
    devices = domain.find("devices")
    if devices is None or not count:
        return
    interfaces = devices.findall("interface")
    place = list(devices).index(interfaces[-1]) + 1 if interfaces else len(devices)
    model = "virtio-non-transitional"
    for interface in interfaces:
        found = interface.find("model")
        if found is not None and found.get("type", "").startswith("virtio"):
            model = found.get("type", model)
    for number in range(count):
        made = ET.Element("interface", {"type": "ethernet"})
        ET.SubElement(made, "model", {"type": model})
        ET.SubElement(made, "target", {"dev": f"placeholder-{number}", "managed": "no"})
        devices.insert(place + number, made)


def _remove_placeholders(devices: ET.Element) -> None:
    for interface in devices.findall("interface"):
        target = interface.find("target")
        if target is not None and target.get("dev", "").startswith("placeholder-"):
            devices.remove(interface)


def _add_ports(devices: ET.Element, count: int) -> None:
    controllers = devices.findall("controller[@type='pci']")
    highest = max((int(one.get("index", "0")) for one in controllers), default=0)
    place = list(devices).index(controllers[-1]) + 1 if controllers else len(devices)
    for offset in range(min(count, MOST_PORTS - highest)):
        port = {"type": "pci", "index": str(highest + 1 + offset), "model": "pcie-root-port"}
        devices.insert(place + offset, ET.Element("controller", port))
