"""Rules on disks. Some paths come doubled, as KubeVirt reports them."""

from __future__ import annotations

import re
from collections.abc import Callable

from kvnode.spec.cause import shown
from kvnode.spec.validation.names import dns_label_fault
from kvnode.spec.validation.review import Json, Review, feature_on
from kvnode.spec.validation.syntax import PCI_EXAMPLE, is_pci_address

_DISKS = "domain.devices.disks"
_DOUBLED = f"{_DISKS}.{_DISKS}"
_SERIAL = re.compile(r"[A-Za-z0-9_.+-]+")
_SERIAL_LENGTH = 256
_SMALLEST_BLOCK, _LARGEST_BLOCK = 512, 2 * 1024 * 1024
_CACHES = ("none", "writethrough", "writeback")
_IO_MODES = ("native", "threads")
_ERROR_POLICIES = ("stop", "ignore", "report", "enospace")
_BUSES = ("virtio", "scsi", "sata", "usb")


def check_disks(review: Review) -> None:
    """Each disk by itself, and no name twice (pkg/storage/admitters/disks.go:45)."""
    seen: dict[str, int] = {}
    for index, disk in enumerate(review.disks):
        first = seen.setdefault(disk.get("name", ""), index)
        if first != index:
            review.invalid(f"{_DISKS}[{index}].name", f"is also the name of disk {first}: names are unique")
        for check in _EACH:
            check(review, index, disk)


def device_kind(disk: Json) -> str:
    """Which device a disk is: disk, lun, cdrom, or "" while it is left to defaulting."""
    return next((kind for kind in ("disk", "lun", "cdrom") if kind in disk), "")


def device_bus(disk: Json) -> str:
    """The bus of a disk's device, or ""."""
    bus: str = (disk.get(device_kind(disk)) or {}).get("bus", "")
    return bus


def _check_target(review: Review, index: int, disk: Json) -> None:
    """One device at most (disks.go:91)."""
    if sum(kind in disk for kind in ("disk", "lun", "cdrom")) > 1:
        review.invalid(f"{_DISKS}[{index}]", "must be one of disk, lun and cdrom, not several")


def _check_pci_address(review: Review, index: int, disk: Json) -> None:
    """A PCI address, on virtio only (disks.go:115)."""
    target = disk.get("disk") or {}
    address = target.get("pciAddress", "")
    if not address:
        return
    path = f"{_DOUBLED}.disk[{index}].pciAddress"
    if target.get("bus", "") != "virtio":
        review.invalid(path, "needs the disk's bus to be virtio")
    if not is_pci_address(address):
        review.invalid(path, f"is {shown(address)}: must be a PCI address such as {PCI_EXAMPLE}")


def _check_boot_order_value(review: Review, index: int, disk: Json) -> None:
    """Boot orders start at 1 (disks.go:140)."""
    if disk.get("bootOrder", 1) < 1:
        review.invalid(f"{_DISKS}[{index}].bootOrder", "must be 1 or more")


def _check_bus(review: Review, index: int, disk: Json) -> None:
    """Which buses there are, and for which device (disks.go:178)."""
    kind, bus = device_kind(disk), device_bus(disk)
    if not bus:
        return
    path = f"{_DISKS}[{index}].{kind}.bus"
    if bus not in _BUSES:
        review.invalid(path, f"is {shown(bus)}: must be one of {', '.join(_BUSES)}")
    elif bus == "virtio" and kind == "cdrom":
        review.invalid(path, "is virtio, which has no CD-ROM drives: use sata or scsi")
    elif bus == "sata" and (disk.get("disk") or {}).get("readonly"):
        review.invalid(path, "is sata, whose hard disks cannot be read-only: use virtio, scsi, or a cdrom")
    if disk.get("dedicatedIOThread") and bus != "virtio":
        message = f"has a dedicatedIOThread, which needs the bus virtio, not {shown(bus)}"
        review.not_supported(f"{_DOUBLED}[{index}]", message)


def _check_serial(review: Review, index: int, disk: Json) -> None:
    """Letters and length of a serial (disks.go:222,234)."""
    serial = disk.get("serial", "")
    if not serial:
        return
    path = f"{_DISKS}[{index}].serial"
    if _SERIAL.fullmatch(serial) is None:
        review.invalid(path, f"is {shown(serial)}: only letters, digits and '_.+-' are allowed")
    if len(serial) > _SERIAL_LENGTH:
        review.invalid(path, f"has {len(serial)} characters: at most {_SERIAL_LENGTH} are allowed")


def _check_modes(review: Review, index: int, disk: Json) -> None:
    """Cache, I/O mode and error policy (disks.go:246,258,270)."""
    cache, mode, policy = disk.get("cache", ""), disk.get("io", ""), disk.get("errorPolicy")
    if cache and cache not in _CACHES:
        review.invalid(f"{_DISKS}[{index}].cache", f"is {shown(cache)}: use one of {', '.join(_CACHES)}")
    if mode and mode not in _IO_MODES:
        review.not_supported(
            f"{_DOUBLED}[{index}].io", f"is {shown(mode)}: use one of {', '.join(_IO_MODES)}"
        )
    if policy is not None and policy not in _ERROR_POLICIES:
        message = f"is {shown(policy)}: use one of {', '.join(_ERROR_POLICIES)}"
        review.invalid(f"{_DISKS}[{index}].errorPolicy", message)


def _check_name(review: Review, index: int, disk: Json) -> None:
    """A name can become that of a container (disks.go:282)."""
    name = disk.get("name", "")
    fault = dns_label_fault(name)
    if fault:
        review.invalid(f"{_DOUBLED}[{index}].name", f"is {shown(name)}: {fault}")


def _check_block_size(review: Review, index: int, disk: Json) -> None:
    """Custom block sizes (disks.go:322-366)."""
    size = disk.get("blockSize") or {}
    custom = size.get("custom")
    if custom is None:
        return
    path = f"{_DISKS}[{index}].blockSize"
    if feature_on(size.get("matchVolume")):
        review.invalid(path, "has both custom and matchVolume: keep one of them")
        return
    logical, physical = custom.get("logical", 0), custom.get("physical", 0)
    discard = custom.get("discardGranularity")
    if logical > physical:
        review.invalid(f"{path}.custom.logical", f"is {logical}: must not exceed physical, {physical}")
    elif device_bus(disk) == "sata" and logical != _SMALLEST_BLOCK:
        review.invalid(f"{path}.custom.logical", f"is {logical}: must be {_SMALLEST_BLOCK} on sata")
    elif discard is not None and logical and discard % logical:
        message = f"is {discard}: must be a multiple of logical, {logical}"
        review.invalid(f"{path}.custom.discardGranularity", message)
    else:
        for name, bytes_ in (("logical", logical), ("physical", physical)):
            if not _SMALLEST_BLOCK <= bytes_ <= _LARGEST_BLOCK or bytes_ & (bytes_ - 1):
                message = f"is {bytes_}: must be a power of two from {_SMALLEST_BLOCK} to {_LARGEST_BLOCK}"
                review.invalid(f"{path}.custom.{name}", message)


_EACH: tuple[Callable[[Review, int, Json], None], ...] = (
    _check_target,
    _check_pci_address,
    _check_boot_order_value,
    _check_bus,
    _check_serial,
    _check_modes,
    _check_name,
    _check_block_size,
)


def check_disk_volumes(review: Review) -> None:
    """Each disk has a volume that suits it (vmi-create-admitter.go:624-667)."""
    volumes = {volume.get("name", ""): volume for volume in review.volumes}
    for index, disk in enumerate(review.disks):
        path = f"{_DISKS}[{index}]"
        volume = volumes.get(disk.get("name", ""))
        if volume is None:
            _check_no_volume(review, path, disk)
            continue
        if "lun" in disk and "persistentVolumeClaim" not in volume and "dataVolume" not in volume:
            review.invalid(f"{path}.lun", "needs a volume that is a persistentVolumeClaim or a dataVolume")
        if "downwardMetrics" in volume:
            _check_metrics_disk(review, path, disk)


def _check_no_volume(review: Review, path: str, disk: Json) -> None:
    """Only a CD-ROM drive can be empty, and only with its gate (vmi-create-admitter.go:629)."""
    name = shown(disk.get("name", ""))
    if "cdrom" not in disk:
        review.invalid(f"{path}.name", f"is {name}: must name one of spec.volumes")
    elif not review.config.gate("DeclarativeHotplugVolumes"):
        message = f"is {name}: an empty CD-ROM drive needs the feature gate DeclarativeHotplugVolumes"
        review.invalid(f"{path}.name", message)


def _check_metrics_disk(review: Review, path: str, disk: Json) -> None:
    """Downward metrics are read from a virtio disk (vmi-create-admitter.go:654)."""
    target = disk.get("disk")
    if target is None:
        review.required(f"{path}.disk", "must be set: a downwardMetrics volume needs a disk")
    elif target.get("bus", "") not in ("", "virtio"):
        review.invalid(f"{path}.disk.bus", "must be virtio for a downwardMetrics volume")


def check_boot_order(review: Review) -> None:
    """No boot order twice, among disks and interfaces together (vmi-create-admitter.go:354,669)."""
    used: set[int] = set()
    for index, disk in enumerate(review.disks):
        order = disk.get("bootOrder")
        if order is not None and order in used:
            review.invalid(f"{_DISKS}[{index}].bootOrder", f"is {order}, like that of another device")
        used.add(order if order is not None else -1)
    for index, interface in enumerate(review.interfaces):
        order = interface.get("bootOrder")
        if order is None:
            continue
        if order < 1:
            # Reported right below the spec (vmi-create-admitter.go:361).
            review.invalid(f"[{index}].bootOrder", f"of interface {index} must be 1 or more")
            continue
        if order in used:
            path = f"domain.devices.interfaces[{index}].bootOrder"
            review.invalid(path, f"is {order}, like that of another device")
        used.add(order)


def check_disk_bus_arm64(review: Review) -> None:
    """arm64 has disks on virtio and SCSI only (arm64.go:87)."""
    if review.architecture != "arm64":
        return
    for index, disk in enumerate(review.disks):
        for kind in ("disk", "cdrom", "lun"):
            bus = (disk.get(kind) or {}).get("bus", "")
            if bus not in ("", "virtio", "scsi"):
                message = f"is {shown(bus)}: must be virtio or scsi on arm64"
                review.not_supported(f"{_DISKS}[{index}].{kind}.bus", message)


def check_reservation(review: Review) -> None:
    """SCSI persistent reservation is turned on in the cluster (vmi-create-admitter.go:2023)."""
    wanted = any((disk.get("lun") or {}).get("reservation") for disk in review.disks)
    if wanted and not review.pr_enabled:
        message = "needs persistentReservationConfiguration.enabled in the cluster's configuration"
        review.invalid(f"{_DISKS}.luns.reservation", message)


RULES = (check_disks, check_disk_volumes, check_boot_order, check_disk_bus_arm64, check_reservation)
