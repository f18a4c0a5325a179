"""Disks that grow with their claims: an image before the guest starts, a disk while it runs
(``pkg/virt-launcher/virtwrap/manager.go:1014``, ``:1936``).
"""

from __future__ import annotations

import json
import os
import stat
import xml.etree.ElementTree as ET
from pathlib import Path
from typing import Any

import libvirt

from kvnode.api.quantity import Quantity
from kvnode.launcher.errors import LauncherError
from kvnode.launcher.image import run_tool
from kvnode.launcher.log import logger
from kvnode.launcher.manager.disks import Source
from kvnode.launcher.manager.instance import Instance
from kvnode.launcher.manager.xml import name_of

MIB = 1 << 20

#: ``virDomainBlockResize`` reads the size off the device (libvirt 10.0); older bindings do not name it.
RESIZE_CAPACITY = getattr(libvirt, "VIR_DOMAIN_BLOCK_RESIZE_CAPACITY", 2)
CAPACITY_SINCE = 10_000_000


def grow_images(vmi: Instance, domain: ET.Element) -> None:
    """Grow the image files of claims before the guest starts. What fails is logged: the guest starts with
    the disk as it is. Blocks.
    """
    for disk in domain.iterfind("devices/disk"):
        claim = claim_of(vmi, disk)
        source = Source.of(disk)
        if claim is None or source.block or not source.backend:
            continue
        try:
            path = Path(source.backend)
            size = possible_size(claim, path)
            if size and size > _virtual_size(path, disk):
                logger.info("growing the image of %s to %d bytes", name_of(disk), size)
                run_tool(["qemu-img", "resize", *_how(path, disk), source.path, str(size)], "DiskFailed")
        except (LauncherError, OSError, ValueError) as error:
            logger.warning("the image of %s cannot be grown: %s", name_of(disk), error)


def grow_disks(vmi: Instance, domain: libvirt.virDomain, live: ET.Element, libvirt_version: int) -> None:
    """Tell the running guest, ``live``, of claims that have grown. What fails is logged. Blocks."""
    for disk in live.iterfind("devices/disk"):
        claim = claim_of(vmi, disk)
        source = Source.of(disk)
        fixed = disk.get("device") == "cdrom" or disk.find("readonly") is not None
        if claim is None or fixed or not source.path:
            continue
        try:
            _grow_disk(claim, domain, source, libvirt_version)
        except (libvirt.libvirtError, OSError, ValueError) as error:
            logger.warning("disk %s cannot be grown: %s", name_of(disk), error)


def _grow_disk(claim: dict[str, Any], domain: libvirt.virDomain, source: Source, version: int) -> None:
    capacity, _, physical = domain.blockInfo(source.path)
    if capacity == 0:  # libvirt could not tell: better not touched
        return
    if source.block:
        if capacity < physical and not source.overlay:
            _resize_device(domain, source.path, physical, version)
        return
    size = possible_size(claim, Path(source.backend))
    if size and size > capacity:
        domain.blockResize(source.path, size, libvirt.VIR_DOMAIN_BLOCK_RESIZE_BYTES)


def _resize_device(domain: libvirt.virDomain, path: str, physical: int, version: int) -> None:
    """Have QEMU read the device's size anew: what a claim says may differ from it (an encrypted device has a
    header).
    """
    flags = libvirt.VIR_DOMAIN_BLOCK_RESIZE_BYTES
    if version >= CAPACITY_SINCE:
        domain.blockResize(path, 0, flags | RESIZE_CAPACITY)
    else:
        domain.blockResize(path, physical, flags)


def claim_of(vmi: Instance, disk: ET.Element) -> dict[str, Any] | None:
    """What the VMI's status says of the claim behind a disk; None when there is no claim."""
    status = vmi.volume_status.get(name_of(disk)) or {}
    found: dict[str, Any] | None = status.get("persistentVolumeClaimInfo")
    return found


def possible_size(claim: dict[str, Any], image: Path) -> int:
    """Bytes that an image in a claim's file system may have, a whole number of MiB; 0 when nothing tells.

    The claim's capacity or what is usable, whichever is less, without the file system's own share.
    Raises OSError.
    """
    sizes = [(claim.get(part) or {}).get("storage") for part in ("capacity", "requests")]
    if None in sizes or claim.get("filesystemOverhead") is None:
        return 0
    overhead = float(claim["filesystemOverhead"])
    if not 0 <= overhead <= 1:
        return 0
    capacity = min(Quantity(size).value for size in sizes if size is not None)
    system = os.statvfs(image)
    usable = image.stat().st_blocks * 512 + system.f_bavail * system.f_frsize
    size = int((1 - overhead) * min(capacity, usable))
    return size - size % MIB


def _virtual_size(image: Path, disk: ET.Element) -> int:
    """Bytes that the guest sees of an image; raises LauncherError or OSError."""
    status = image.stat()
    if not stat.S_ISREG(status.st_mode):
        raise OSError(f"{image} is no regular file")
    if _format(disk) == "raw":
        return status.st_size
    told = json.loads(run_tool(["qemu-img", "info", "--output=json", str(image)], "DiskFailed"))
    return int(told["virtual-size"])


def _how(image: Path, disk: ET.Element) -> list[str]:
    """Allocate what is added if what is there is allocated."""
    status = image.stat()
    full = status.st_blocks * 512 >= status.st_size
    return ["-f", _format(disk), f"--preallocation={'falloc' if full else 'off'}"]


def _format(disk: ET.Element) -> str:
    driver = disk.find("driver")
    return "raw" if driver is None else driver.get("type") or "raw"
