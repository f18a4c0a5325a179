"""What is done before a domain is defined: directories first, then one step a kind of disk."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from kvnode.launcher import cloudinit, container_disk, empty_disk, host_disk, kernel_boot, paths

#: The steps in the reference's order (``pkg/virt-launcher/virtwrap/manager.go:892``).
STEPS: tuple[Callable[[Mapping[str, Any]], None], ...] = (
    cloudinit.prepare,
    kernel_boot.prepare,
    container_disk.prepare,
    host_disk.prepare,
    empty_disk.prepare,
)


def make_directories(uid: str) -> None:
    """Make the directories that libvirt and QEMU expect to find; raises OSError."""
    directories = (
        paths.PRIVATE / uid,
        paths.EPHEMERAL / "disk-data",
        paths.EPHEMERAL / "cloud-init-data",
        paths.CONTAINER_DISKS,
        paths.HOTPLUG_DISKS,
        paths.PRIVATE / "libvirt/qemu/nvram",
        paths.VMI_DISKS,
        paths.EMPTY_DISKS,
        paths.CLOUD_INIT,
        paths.LIBVIRT_RUN,
    )
    for directory in directories:
        directory.mkdir(parents=True, exist_ok=True)


def run_steps(vmi: Mapping[str, Any]) -> None:
    """Run every step; raises LauncherError by the first that fails."""
    for step in STEPS:
        step(vmi)
