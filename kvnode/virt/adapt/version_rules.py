"""Rules for what came to libvirt after the oldest version that domains are defined on (9.0), by release.

Where the release that brought a thing is not sure, the rule holds for all before 11.3, whose schema has it.
"""

from __future__ import annotations

import xml.etree.ElementTree as ET

from kvnode.virt.adapt.rule import Rule, remove_all


def _one_thread_a_disk(domain: ET.Element) -> bool:
    """Give each disk one thread of its list in turn: before 10.0 the driver takes a single ``iothread``."""
    changed = False
    for turn, driver in enumerate(domain.iterfind("devices/disk/driver[iothreads]")):
        shared = driver.findall("iothreads")
        threads = [thread.get("id", "") for thread in shared[0]]
        remove_all(driver, shared)
        if threads:
            driver.set("iothread", threads[turn % len(threads)])
        changed = True
    return changed


def _without_discard_granularity(domain: ET.Element) -> bool:
    changed = False
    for disk in domain.iterfind("devices/disk"):
        for sizes in disk.findall("blockio[@discard_granularity]"):
            del sizes.attrib["discard_granularity"]
            if not sizes.attrib:
                disk.remove(sizes)
            changed = True
    return changed


def _raw_variables(domain: ET.Element) -> bool:
    """Drop the format of the EFI variables where it is the only one that there was before."""
    variables = domain.find("os/nvram[@format='raw']")
    if variables is None:
        return False
    del variables.attrib["format"]
    return True


def _plain_tlb_flush(domain: ET.Element) -> bool:
    flush = domain.find("features/hyperv/tlbflush")
    return flush is not None and remove_all(flush, list(flush))


def _pci_without_display(domain: ET.Element) -> bool:
    changed = False
    for device in domain.iterfind("devices/hostdev[@type='pci']"):
        for name in ("display", "ramfb"):
            changed |= device.attrib.pop(name, None) is not None
    return changed


VERSION_RULES = (
    Rule(
        "one-iothread-a-disk",
        "a disk served by several I/O threads came with libvirt 10.0; the threads take turns over the disks",
        _one_thread_a_disk,
        until=10_000_000,
        note="each disk has one I/O thread: this libvirt cannot spread a disk over several",
    ),
    Rule(
        "discard-granularity",
        "libvirt 9.0 skips <blockio discard_granularity>, which came in the year after it",
        _without_discard_granularity,
        until=9_006_000,
        note="QEMU chooses how finely disks discard: this libvirt does not know discardGranularity",
    ),
    Rule(
        "nvram-format",
        "<nvram format> came with libvirt 9.2; before it all variables were raw, as these are",
        _raw_variables,
        until=9_002_000,
    ),
    Rule(
        "tlbflush-modes",
        "the direct and extended modes of Hyper-V's TLB flush came with libvirt 11.0, and earlier ones skip them",
        _plain_tlb_flush,
        until=11_000_000,
        note="Hyper-V's TLB flush has no direct or extended mode: this libvirt does not know them",
    ),
    Rule(
        "pci-display",
        "a display of a passed-through PCI device is known to libvirt 11.3; 9.0 skips it",
        _pci_without_display,
        until=11_003_000,
        note="a passed-through PCI device has no display: this libvirt does not know one",
    ),
)
