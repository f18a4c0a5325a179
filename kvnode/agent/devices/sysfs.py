"""Devices that sysfs knows (sysfs(5), ``Documentation/ABI/testing/sysfs-bus-pci``, ``-vfio-mdev``, ``-usb``).

All of it is read below a root, so that a container may have the node's sysfs elsewhere. What has none of the files
that it should have is passed over: devices come and go while they are looked at.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

_PCI, _MDEV, _USB = "bus/pci/devices", "bus/mdev/devices", "bus/usb/devices"
_VFIO = "vfio-pci"


@dataclass(frozen=True, slots=True)
class Passed:
    """A device that VFIO hands to a guest as it is."""

    address: str
    """PCI address, or UUID of a mediated device."""
    kind: str
    """``vendor:product`` in lower case, or name of a mediated device's type with underscores for spaces."""
    group: str
    """IOMMU group, and name of its node below ``/dev/vfio``."""
    numa_node: int | None
    nodes: tuple[str, ...] = ()
    """Its own nodes below ``/dev/vfio/devices``, of kernels that have them."""


@dataclass(frozen=True, slots=True)
class UsbDevice:
    """A device at a USB bus."""

    vendor: int
    product: int
    bus: int
    number: int
    path: str
    """Of its node, below ``/dev``."""

    @property
    def id(self) -> str:
        """What tells it from others (``usb_device.go:66-68``)."""
        return f"{self.vendor:04x}:{self.product:04x}-{self.bus:02d}:{self.number:02d}"


def pci_devices(sysfs: Path) -> list[Passed]:
    """PCI devices that can be handed to a guest, by address (``pci_device.go:252-311``).

    Those are the devices that vfio-pci has, and virtual functions of NVIDIA's driver with a vGPU type.
    """
    found = []
    for folder in _folders(sysfs / _PCI):
        kind = _property(folder / "uevent", "PCI_ID").lower()
        group = _link_name(folder / "iommu_group")
        if not kind or not group or not _is_handed_out(folder):
            continue
        nodes = tuple(f"devices/{one.name}" for one in _folders(folder / "vfio-dev"))
        found.append(Passed(folder.name, kind, group, _numa_node(folder), nodes))
    return found


def _is_handed_out(folder: Path) -> bool:
    driver = _link_name(folder / "driver")
    if driver == _VFIO:
        return True
    if driver != "nvidia" or (folder / "sriov_totalvfs").exists():
        return False
    return _text(folder / "nvidia/current_vgpu_type") not in ("", "0")


def mediated_devices(sysfs: Path) -> list[Passed]:
    """Mediated devices, by UUID (``mediated_device.go:201-240,326-347``)."""
    found = []
    for folder in _folders(sysfs / _MDEV):
        group = _link_name(folder / "iommu_group")
        kind = _text(folder / "mdev_type/name") or _link_name(folder / "mdev_type")
        try:
            parent = folder.readlink().parts[-2]
        except (OSError, IndexError):
            continue
        if kind and group:
            numa_node = _numa_node(sysfs / _PCI / parent)
            found.append(Passed(folder.name, type_name(kind), group, numa_node))
    return found


def type_name(text: str) -> str:
    """Name of a mediated device's type, as the configuration and sysfs agree on it."""
    return text.replace(" ", "_").strip()


def usb_devices(sysfs: Path) -> list[UsbDevice]:
    """USB devices that are plugged in, without the hubs of the controllers themselves (``usb_device.go:500-530``)."""
    found = []
    for folder in _folders(sysfs / _USB):
        if folder.name.startswith("usb") or not (folder / "idVendor").exists():
            continue
        try:
            vendor, product, _ = _property(folder / "uevent", "PRODUCT").split("/")
            bus, number = _property(folder / "uevent", "BUSNUM"), _property(folder / "uevent", "DEVNUM")
            path = _property(folder / "uevent", "DEVNAME")
            found.append(UsbDevice(int(vendor, 16), int(product, 16), int(bus), int(number), path))
        except ValueError:
            continue
    return [one for one in found if one.path and ".." not in Path(one.path).parts]


def _folders(folder: Path) -> list[Path]:
    try:
        return sorted(folder.iterdir())
    except OSError:
        return []


def _text(file: Path) -> str:
    try:
        return file.read_text(errors="replace").strip()
    except OSError:
        return ""


def _property(file: Path, name: str) -> str:
    """A line ``name=value`` of a file; "" when it has none."""
    for line in _text(file).splitlines():
        key, _, value = line.partition("=")
        if key == name:
            return value.strip()
    return ""


def _link_name(link: Path) -> str:
    """Last part of what a link leads to; "" when there is none."""
    try:
        return link.readlink().name
    except OSError:
        return ""


def _numa_node(folder: Path) -> int | None:
    text = _text(folder / "numa_node")
    return int(text) if text.isascii() and text.isdigit() else None
