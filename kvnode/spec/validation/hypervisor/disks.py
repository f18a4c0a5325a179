"""Disks that libvirt or QEMU do not take."""

from __future__ import annotations

from collections.abc import Iterator

from kvnode.spec.cause import shown
from kvnode.spec.validation.disks import device_bus, device_kind
from kvnode.spec.validation.review import Json, Review
from kvnode.spec.validation.syntax import is_pci_address

_DISKS = "domain.devices.disks"
_SCSI_SERIAL = 36  # QEMU hw/scsi/scsi-disk.c: an error since 9.1, cut before
_SHORT_SERIAL = 20  # QEMU hw/block/virtio-blk.c and hw/ide: cut
_LARGEST_BOOT_ORDER = 2**31 - 1  # QEMU bootindex
_CONVENTIONAL = ("e1000", "rtl8139")  # network cards that libvirt does not put on PCI Express
_LARGEST_DISCARD = 2**32 - 1  # QEMU discard_granularity


def _disks(review: Review) -> Iterator[tuple[str, Json, str, str]]:
    """Each disk with its path, kind and bus; a bus that is left out is the one that defaulting gives."""
    default = "sata" if review.architecture == "amd64" else "virtio"
    for index, disk in enumerate(review.disks):
        kind = device_kind(disk) or "disk"
        yield f"{_DISKS}[{index}]", disk, kind, device_bus(disk) or default


def check_serials(review: Review) -> None:
    """Serials longer than the bus carries: refused by QEMU on SCSI and USB, cut elsewhere."""
    for path, disk, kind, bus in _disks(review):
        serial = disk.get("serial", "")
        if not serial:
            continue
        if kind == "lun" and bus == "scsi":
            message = "cannot be set: libvirt refuses it for a lun, which shows its own"
            review.invalid(f"{path}.serial", message)
        elif bus in ("scsi", "usb") and len(serial) > _SCSI_SERIAL:
            message = f"has {len(serial)} characters: QEMU takes {_SCSI_SERIAL} at most on {bus}"
            review.invalid(f"{path}.serial", message)
        elif bus in ("virtio", "sata") and len(serial) > _SHORT_SERIAL:
            message = f"has {len(serial)} characters: the guest sees the first {_SHORT_SERIAL} on {bus}"
            review.invalid(f"{path}.serial", message)


def check_lun_bus(review: Review) -> None:
    """A lun is on SCSI; libvirt refuses it on SATA and USB, QEMU on virtio devices of today."""
    legacy = bool(review.devices.get("useVirtioTransitional"))
    for path, _, kind, bus in _disks(review):
        if kind == "lun" and bus != "scsi" and not (legacy and bus == "virtio"):
            review.invalid(f"{path}.lun.bus", f"is {shown(bus)}: a lun starts on scsi only")


def check_io_mode(review: Review) -> None:
    """Native I/O goes past the page cache; libvirt refuses it with a cache."""
    for path, disk, _, _ in _disks(review):
        cache = disk.get("cache", "")
        if disk.get("io") == "native" and cache in ("writethrough", "writeback"):
            review.invalid(f"{path}.io", f"is native, which libvirt takes with cache none only, not {cache}")


def check_discard_granularity(review: Review) -> None:
    """QEMU takes 32 bits, and on SATA 512 bytes only."""
    for path, disk, _, bus in _disks(review):
        granularity = ((disk.get("blockSize") or {}).get("custom") or {}).get("discardGranularity")
        where = f"{path}.blockSize.custom.discardGranularity"
        if granularity is not None and granularity > _LARGEST_DISCARD:
            review.invalid(where, f"is {granularity}: QEMU takes {_LARGEST_DISCARD} at most")
        elif granularity and bus == "sata" and granularity != 512:
            review.invalid(where, f"is {granularity}: QEMU takes 512 only on sata")


def check_trays(review: Review) -> None:
    """Trays are open or closed; libvirt refuses any other word."""
    for path, disk, kind, _ in _disks(review):
        tray = (disk.get(kind) or {}).get("tray", "")
        if tray not in ("", "open", "closed"):
            review.invalid(f"{path}.{kind}.tray", f"is {shown(tray)}: must be open or closed")


def check_boot_orders(review: Review) -> None:
    """Boot orders are signed 32-bit numbers in QEMU."""
    for base, items in ((_DISKS, review.disks), ("domain.devices.interfaces", review.interfaces)):
        for index, item in enumerate(items):
            order = item.get("bootOrder", 0)
            if order > _LARGEST_BOOT_ORDER:
                message = f"is {order}: QEMU takes {_LARGEST_BOOT_ORDER} at most"
                review.invalid(f"{base}[{index}].bootOrder", message)


def check_pci_addresses(review: Review) -> None:
    """PCI addresses that libvirt has no place for, or that two devices ask for.

    Buses other than 00 are root ports, whose one slot is 00, or bridges for conventional devices, whose
    slots start at 01. s390x has no PCI bus for these devices.
    """
    if review.architecture == "s390x":
        return
    asked: dict[str, str] = {}
    for path, address, conventional in _pci_addresses(review):
        if not is_pci_address(address):
            continue  # an error already
        fault = _pci_fault(address, conventional)
        if fault:
            review.invalid(path, f"is {address}: {fault}")
        elif asked.setdefault(address.lower(), path) != path:
            review.invalid(path, f"is {address}, as is spec.{asked[address.lower()]}: libvirt refuses that")


def _pci_fault(address: str, conventional: bool) -> str | None:
    domain, bus, slot = address[:4], address[5:7], int(address[8:10], 16)
    if domain != "0000":
        return "libvirt has the PCI domain 0000 only"
    if address == "0000:00:00.0":
        return "libvirt takes that for not set"
    if slot > 0x1F:
        return "libvirt has slots from 00 to 1f only"
    if bus != "00" and conventional and slot == 0:
        return "libvirt puts this conventional device on a bridge, whose slots start at 01"
    if bus != "00" and not conventional and slot > 0:
        return "libvirt puts this device on a root port, whose one slot is 00"
    return None


def _pci_addresses(review: Review) -> Iterator[tuple[str, str, bool]]:
    """Paths and addresses asked for, and whether the device is a conventional one, not PCI Express."""
    legacy = bool(review.devices.get("useVirtioTransitional"))
    for index, disk in enumerate(review.disks):
        address = (disk.get("disk") or {}).get("pciAddress")
        if address:
            yield f"{_DISKS}[{index}].disk.pciAddress", address, legacy
    for index, interface in enumerate(review.interfaces):
        if interface.get("pciAddress"):
            model = "" if "sriov" in interface else interface.get("model") or "virtio"
            conventional = model in _CONVENTIONAL or (legacy and model == "virtio")
            yield f"domain.devices.interfaces[{index}].pciAddress", interface["pciAddress"], conventional


RULES = (
    check_serials,
    check_lun_bus,
    check_io_mode,
    check_discard_granularity,
    check_trays,
    check_boot_orders,
    check_pci_addresses,
)
