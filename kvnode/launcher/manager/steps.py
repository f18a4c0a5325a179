"""What is done to files and to the domain around its definition."""

from __future__ import annotations

import os

from kvnode.launcher import cloudinit, disk_modes, prepare
from kvnode.launcher.manager.instance import Instance


class Steps:
    """The steps of a launcher pod. They block, and raise LauncherError."""

    def before_define(self, vmi: Instance) -> None:
        """Make the disks that the domain names (``pkg/virt-launcher/virtwrap/manager.go:892``)."""
        prepare.run_steps(vmi.data)

    def set_modes(self, domain: str) -> str:
        """Fill in what the disks' file systems decide; the domain's XML comes back."""
        return disk_modes.set_disk_modes(domain)

    def before_start(self, vmi: Instance, domain: str) -> None:
        """Tell cloud-init the addresses that libvirt gave to tagged devices; ``domain`` is its XML."""
        devices = cloudinit.tagged_devices(vmi.data, domain)
        data = cloudinit.read(vmi.data) if devices else None
        if data is not None:
            cloudinit.generate(vmi.data, data, devices)


def sync_files(directory: str) -> None:
    """Write what is in a directory to its disk; one that is not there has nothing. Raises OSError."""
    for root, _, files in os.walk(directory):
        for path in (root, *(os.path.join(root, name) for name in files)):  # noqa: PTH118
            if os.path.islink(path):  # noqa: PTH114
                continue
            descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
            try:
                os.fsync(descriptor)
            finally:
                os.close(descriptor)
