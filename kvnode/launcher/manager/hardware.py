"""CPUs, memory and host devices of a running guest."""

from __future__ import annotations

import xml.etree.ElementTree as ET

import libvirt

from kvnode.api.quantity import Quantity
from kvnode.launcher.context import parse_cpus
from kvnode.launcher.log import logger
from kvnode.launcher.manager.disks import LIVE_AND_CONFIG
from kvnode.launcher.manager.errors import ManagerError
from kvnode.launcher.manager.instance import Instance
from kvnode.launcher.manager.xml import name_of, parse, text

#: Grain in bytes in which memory is plugged; with huge pages of 1 GiB, those
#: (``pkg/liveupdate/memory/memory.go``).
BLOCK, HUGE_BLOCK = 2 << 20, 1 << 30
#: From this version on libvirt plugs memory into guests without NUMA cells.
NO_CELL_SINCE = 11_003_000
_SRIOV = "sriov-"
_LIVE_AND_CONFIG = libvirt.VIR_DOMAIN_AFFECT_LIVE | libvirt.VIR_DOMAIN_AFFECT_CONFIG


def set_vcpus(domain: libvirt.virDomain, count: int) -> None:
    """Give the guest ``count`` virtual CPUs. Blocks. Raises libvirtError."""
    domain.setVcpusFlags(count, libvirt.VIR_DOMAIN_VCPU_LIVE | libvirt.VIR_DOMAIN_VCPU_CONFIG)


def pin_vcpus(domain: libvirt.virDomain, wanted: ET.Element) -> None:
    """Pin virtual CPUs and the emulator to the host's as wanted. Blocks. Raises libvirtError."""
    there = domain.vcpusFlags(libvirt.VIR_DOMAIN_VCPU_LIVE)
    for pin in wanted.iterfind("cputune/vcpupin"):
        number = int(pin.get("vcpu", "0"))
        if number < there:
            domain.pinVcpuFlags(number, cpu_map(pin.get("cpuset", "")), _LIVE_AND_CONFIG)
    emulator = wanted.find("cputune/emulatorpin")
    if emulator is not None:
        domain.pinEmulator(cpu_map(emulator.get("cpuset", "")), _LIVE_AND_CONFIG)


def cpu_map(cpuset: str) -> tuple[bool, ...]:
    """A list of CPUs as libvirt takes it: for each CPU up to the last, whether it is in."""
    cpus = set(parse_cpus(cpuset))
    return tuple(cpu in cpus for cpu in range(max(cpus, default=-1) + 1))


def set_memory(domain: libvirt.virDomain, vmi: Instance) -> None:
    """Give the guest the memory that the VMI asks for (``pkg/virt-launcher/virtwrap/manager.go:390``).

    Blocks. Raises ManagerError for a VMI whose memory cannot change, libvirtError.
    """
    size, requested = pluggable_memory(vmi)
    device = parse(domain.XMLDesc(0)).find("devices/memory[@model='virtio-mem']")
    if device is None:
        made = memory_device(size, requested, _block(vmi))
        domain.attachDeviceFlags(text(made), LIVE_AND_CONFIG)
    else:
        target = device.find("target")
        if target is None:
            raise ManagerError("the guest's memory device has no target")
        asked = target.find("requested")
        if asked is None:
            asked = ET.SubElement(target, "requested")
        asked.set("unit", "b")
        asked.text = str(requested)
        domain.updateDeviceFlags(text(device), libvirt.VIR_DOMAIN_DEVICE_MODIFY_LIVE)
    logger.info("memory beyond that at boot: %d bytes", requested)


def pluggable_memory(vmi: Instance) -> tuple[int, int]:
    """Bytes that can be plugged in beyond the memory at boot, and bytes that are to be.

    Raises:
        ManagerError: the VMI does not name its memory, or wants less than at boot or more than its limit.
    """
    memory = vmi.domain.get("memory") or {}
    booted = vmi.status.get("memory") or {}
    most = _bytes(memory.get("maxGuest"), "spec.domain.memory.maxGuest")
    wanted = _bytes(memory.get("guest"), "spec.domain.memory.guest")
    at_boot = _bytes(booted.get("guestAtBoot"), "status.memory.guestAtBoot")
    if not at_boot <= wanted <= most:
        raise ManagerError(
            f"spec.domain.memory.guest: must be from {at_boot} (at boot) to {most} (maxGuest) bytes, is {wanted}"
        )
    return most - at_boot, wanted - at_boot


def add_cell(domain: ET.Element) -> bool:
    """Give a domain whose memory may grow the NUMA cell without which libvirt before 11.3 plugs none in: one
    with all there is at the start. True when that was needed.
    """
    memory, cpu = domain.find("memory"), domain.find("cpu")
    if domain.find("maxMemory") is None or memory is None or domain.find("cpu/numa/cell") is not None:
        return False
    count = (domain.findtext("vcpu") or "1").strip()
    if not count.isdecimal():
        return False
    if cpu is None:
        cpu = ET.SubElement(domain, "cpu")
    numa = cpu.find("numa")
    cell = {"id": "0", "cpus": f"0-{int(count) - 1}" if int(count) > 1 else "0"}
    cell.update(memory=(memory.text or "").strip(), unit=memory.get("unit", "KiB"))
    ET.SubElement(ET.SubElement(cpu, "numa") if numa is None else numa, "cell", cell)
    return True


def _bytes(quantity: str | None, field: str) -> int:
    if quantity is None:
        raise ManagerError(f"{field}: is missing, so that the guest's memory cannot change")
    return Quantity(quantity).value


def memory_device(size: int, requested: int, block: int) -> ET.Element:
    """A memory device that can take ``size`` bytes, and gives the guest ``requested`` of them."""
    device = ET.Element("memory", {"model": "virtio-mem"})
    target = ET.SubElement(device, "target")
    for tag, value in (("size", size), ("node", 0), ("block", block), ("requested", requested)):
        child = ET.SubElement(target, tag, {} if tag == "node" else {"unit": "b"})
        child.text = str(value)
    return device


def _block(vmi: Instance) -> int:
    pages = (vmi.domain.get("memory") or {}).get("hugepages") or {}
    return HUGE_BLOCK if pages.get("pageSize") == "1Gi" else BLOCK


def attach_host_devices(domain: libvirt.virDomain, wanted: ET.Element) -> None:
    """Plug in the network functions of the host that the guest lacks (SR-IOV).

    Blocks. Raises ManagerError naming each that failed; the others are plugged in.
    """
    live = parse(domain.XMLDesc(0))
    there = {name_of(device) for device in live.iterfind("devices/hostdev")}
    failed = []
    for device in wanted.iterfind("devices/hostdev"):
        name = name_of(device)
        if not name.startswith(_SRIOV) or name in there:
            continue
        try:
            domain.attachDeviceFlags(text(device), LIVE_AND_CONFIG)
        except libvirt.libvirtError as error:
            failed.append(f"{name.removeprefix(_SRIOV)}: {error.get_error_message()}")
    if failed:
        raise ManagerError(f"host devices cannot be plugged in: {'; '.join(failed)}")
