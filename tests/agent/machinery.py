"""A made sysfs, and the nodes that go with it."""

from __future__ import annotations

from pathlib import Path

from kvnode.agent.devices.offer import Host


class Machine:
    """A machine's ``/sys`` and ``/dev`` below a folder: files and links where a real one has them."""

    def __init__(self, root: Path) -> None:
        self.sysfs, self.devices = root / "sys", root / "dev"
        for folder in ("bus/pci/devices", "bus/mdev/devices", "bus/usb/devices", "kernel/iommu_groups"):
            (self.sysfs / folder).mkdir(parents=True)
        self.host = Host(self.devices, self.sysfs, root / "root", count=2)
        (self.devices / "vfio/devices").mkdir(parents=True)
        (self.devices / "vfio/vfio").touch()

    def _write(self, folder: Path, **files: str) -> None:
        for name, text in files.items():
            path = folder / name.replace("__", "/")
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text + "\n")

    def _group(self, folder: Path, group: str) -> None:
        (folder / "iommu_group").symlink_to(f"../../../kernel/iommu_groups/{group}")
        (self.devices / "vfio" / group).touch()

    def _listed(self, bus: str, folder: Path) -> None:
        target = Path("../../..") / folder.relative_to(self.sysfs)
        (self.sysfs / "bus" / bus / "devices" / folder.name).symlink_to(target)

    def pci(self, address: str, kind: str, group: str = "", driver: str = "vfio-pci", **files: str) -> Path:
        """A PCI device; ``kind`` is ``VENDOR:PRODUCT`` as uevent writes it."""
        folder = self.sysfs / "devices/pci0000:00" / address
        folder.mkdir(parents=True)
        self._write(folder, uevent=f"DRIVER={driver}\nPCI_CLASS=30000\nPCI_ID={kind}", **files)
        if driver:
            (folder / "driver").symlink_to(f"../../../bus/pci/drivers/{driver}")
        if group:
            self._group(folder, group)
        self._listed("pci", folder)
        return folder

    def mdev(self, uuid: str, parent: Path, group: str, kind: str, *, named: bool = True) -> Path:
        """A mediated device of a PCI device's; a type without a name is known by its folder."""
        folder = parent / uuid
        types = parent / "mdev_supported_types" / kind.replace(" ", "-")
        types.mkdir(parents=True, exist_ok=True)
        if named:
            self._write(types, name=kind)
        folder.mkdir()
        (folder / "mdev_type").symlink_to(f"../mdev_supported_types/{types.name}")
        self._group(folder, group)
        self._listed("mdev", folder)
        return folder

    def usb(self, name: str, product: str, bus: int, number: int) -> Path:
        """A USB device; ``product`` as uevent writes it, like ``46d/c52b/1211``. The answer is its node."""
        folder = self.sysfs / "devices/usb" / name
        folder.mkdir(parents=True)
        node = f"bus/usb/{bus:03d}/{number:03d}"
        uevent = f"DEVNAME={node}\nPRODUCT={product}\nBUSNUM={bus:03d}\nDEVNUM={number:03d}"
        self._write(folder, idVendor=product.split("/", maxsplit=1)[0], uevent=uevent)
        self._listed("usb", folder)
        device = self.devices / node
        device.parent.mkdir(parents=True, exist_ok=True)
        device.touch()
        return device
