"""Disks of a running guest: plugged in, pulled out, exchanged in their drive
(``pkg/virt-launcher/virtwrap/manager.go:1485``).
"""

from __future__ import annotations

import copy
import os
import stat
import xml.etree.ElementTree as ET
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import libvirt

from kvnode.launcher import paths
from kvnode.launcher.log import logger
from kvnode.launcher.manager.xml import name_of, parse, target_of, text

#: A change counts for the running guest and for its next start.
LIVE_AND_CONFIG = libvirt.VIR_DOMAIN_DEVICE_MODIFY_LIVE | libvirt.VIR_DOMAIN_DEVICE_MODIFY_CONFIG
# Buses that a running guest lets go of (an empty one is libvirt's to choose).
_PLUGGABLE = ("", "virtio", "scsi")

#: ``set_modes(xml)`` fills in what a domain's disks leave to their file system.
SetModes = Callable[[str], str]


@dataclass(frozen=True)
class Source:
    """Where a disk's content is."""

    path: str = ""
    """What QEMU opens."""

    backend: str = ""
    """What holds the data: the file behind an overlay that tracks changes, else ``path``."""

    block: bool = False
    """``backend`` is a device."""

    overlay: bool = False

    @classmethod
    def of(cls, disk: ET.Element) -> Source:
        """The source of a ``<disk>`` (``pkg/virt-launcher/virtwrap/disksource/disk_source.go``)."""
        source = disk.find("source")
        if source is None:
            return cls()
        path, block = _location(source)
        inner = source.find("dataStore/source")
        if inner is None:
            return cls(path, path, block)
        backend, inner_block = _location(inner)
        return cls(path, backend or path, inner_block if backend else block, overlay=True)

    @property
    def hotplugged(self) -> bool:
        """Whether the volume was added to a running pod."""
        return self.backend.startswith(f"{paths.HOTPLUG_DISKS}/")


def _location(source: ET.Element) -> tuple[str, bool]:
    file = source.get("file", "")
    return (file, False) if file else (source.get("dev", ""), bool(source.get("dev")))


def sync_disks(domain: libvirt.virDomain, wanted: ET.Element, live: ET.Element, set_modes: SetModes) -> bool:
    """Bring the disks of a running guest to what is wanted; True when something was changed.

    A disk whose file is not there yet is left for the next time. Blocks. Raises libvirtError.
    """
    old, new = live.findall("devices/disk"), wanted.findall("devices/disk")
    changed = False
    for disk in detached(old, new):
        logger.info("pulling out disk %s (%s)", name_of(disk), target_of(disk))
        changed |= detach(domain, disk)
    for disk in attached(old, new):
        if not ready(Source.of(disk).backend):
            continue
        logger.info("plugging in disk %s (%s)", name_of(disk), target_of(disk))
        domain.attachDeviceFlags(_with_modes(disk, set_modes), LIVE_AND_CONFIG)
        changed = True
    for disk in exchanged(old, new):
        backend = Source.of(disk).backend
        if backend and not ready(backend):
            continue
        logger.info("changing the medium of %s (%s)", name_of(disk), target_of(disk))
        domain.updateDeviceFlags(text(disk), LIVE_AND_CONFIG)
        changed = True
    return changed


def detach(domain: libvirt.virDomain, device: ET.Element) -> bool:
    """Ask the guest to let go of a device; False when it is at it already. Raises libvirtError."""
    try:
        domain.detachDeviceFlags(text(device), LIVE_AND_CONFIG)
    except libvirt.libvirtError as error:
        if "unplug" in (error.get_error_message() or ""):
            return False
        raise
    return True


def detached(old: Sequence[ET.Element], new: Sequence[ET.Element]) -> Iterator[ET.Element]:
    """Disks to pull out: added to a running pod, and wanted no more."""
    kept = {target_of(disk) for disk in new}
    for disk in old:
        if _pluggable(disk) and Source.of(disk).hotplugged and target_of(disk) not in kept:
            yield disk


def attached(old: Sequence[ET.Element], new: Sequence[ET.Element]) -> Iterator[ET.Element]:
    """Disks to plug in: added to a running pod, and not in the guest yet."""
    there = {target_of(disk) for disk in old}
    for disk in new:
        if _pluggable(disk) and Source.of(disk).hotplugged and target_of(disk) not in there:
            yield disk


def exchanged(old: Sequence[ET.Element], new: Sequence[ET.Element]) -> Iterator[ET.Element]:
    """CD-ROM drives as they are to be: with another medium, or none. The drive itself stays."""
    wanted = {target_of(disk): disk for disk in new}
    for disk in old:
        other = wanted.get(target_of(disk))
        if disk.get("device") != "cdrom" or (other is not None and other.get("device") != "cdrom"):
            continue
        before = Source.of(disk)
        after = Source() if other is None else Source.of(other)
        if not (_changeable(before) and _changeable(after)) or before.path == after.path:
            continue
        yield _with_medium(disk, other if after.backend else None)


def _changeable(source: Source) -> bool:
    return source.hotplugged or not source.backend


def _with_medium(drive: ET.Element, medium: ET.Element | None) -> ET.Element:
    """The drive as it is in the guest, with the source of ``medium``."""
    made = copy.deepcopy(drive)
    for child in made.findall("source") + made.findall("backingStore"):
        made.remove(child)
    source = None if medium is None else medium.find("source")
    if source is not None:
        made.append(copy.deepcopy(source))
    made.set("type", "file" if source is not None and source.get("file") else "block")
    driver = made.find("driver")
    if driver is None:
        driver = ET.SubElement(made, "driver", {"name": "qemu"})
    driver.set("type", "raw")
    return made


def ready(path: str) -> bool:
    """Whether a disk's file or device is there and opens."""
    try:
        mode = os.stat(path).st_mode  # noqa: PTH116
        device = stat.S_ISBLK(mode) or stat.S_ISCHR(mode)
        # Never to wait for somebody at the other end, whatever was put there.
        os.close(os.open(path, (os.O_RDONLY if device else os.O_RDWR) | os.O_NONBLOCK | os.O_CLOEXEC))
    except OSError as error:
        logger.info("disk %s is not ready: %s", path, error.strerror)
        return False
    return True


def _pluggable(disk: ET.Element) -> bool:
    target = disk.find("target")
    return target is not None and target.get("bus", "") in _PLUGGABLE


def _with_modes(disk: ET.Element, set_modes: SetModes) -> str:
    """The disk with its cache and I/O modes, which are set on whole domains."""
    domain = ET.Element("domain")
    ET.SubElement(domain, "devices").append(copy.deepcopy(disk))
    made = parse(set_modes(text(domain))).find("devices/disk")
    return text(disk if made is None else made)
