"""What is done before a domain is defined: directories first, then one step a kind of disk."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from kvnode.launcher import (
    cloudinit,
    config_disks,
    container_disk,
    downward_metrics,
    empty_disk,
    ephemeral,
    host_disk,
    ignition,
    kernel_boot,
    paths,
)

Step = Callable[[Mapping[str, Any]], None]

#: What every disk but cloud-init's needs, in the reference's order
#: (``pkg/virt-launcher/virtwrap/manager.go:892``).
DISK_STEPS: tuple[Step, ...] = (
    ignition.prepare,
    kernel_boot.prepare,
    container_disk.prepare,
    ephemeral.prepare,
    host_disk.prepare,
    empty_disk.prepare,
    config_disks.prepare,
    downward_metrics.prepare,
)
#: All of it. A launcher that tells the guest of tagged devices writes cloud-init's ISO after the domain is
#: defined instead: ``cloudinit.read``, then :data:`DISK_STEPS`, define, ``cloudinit.generate``.
STEPS: tuple[Step, ...] = (cloudinit.prepare, *DISK_STEPS)


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


def run_steps(vmi: Mapping[str, Any], steps: Sequence[Step] = STEPS) -> None:
    """Run steps; raises LauncherError by the first that fails."""
    for step in steps:
        step(vmi)
