"""The directories and files that must be there before the first request (``cmd/virt-launcher/virt-launcher.go``,
``initializeDirs``).
"""

from __future__ import annotations

import os
from pathlib import Path

from kvnode.launcher import paths
from kvnode.launcher.ownership import give_to_qemu
from kvnode.launcher.pod.options import PodOptions

_CHANNEL = paths.PRIVATE / "downwardmetrics-channel"
# QEMU's user alone makes and finds disks here.
_DISKS = (
    paths.PRIVATE / "vm-disks",
    paths.CONFIG_MAP_DISKS,
    paths.SYSPREP_DISKS,
    paths.SECRET_DISKS,
    paths.DOWNWARD_API_DISKS,
    paths.SERVICE_ACCOUNT_DISK,
    _CHANNEL,
)
_DISKS_MODE = 0o750


def make_directories(options: PodOptions) -> None:
    """Make them all, whatever the process's umask; raises OSError."""
    umask = os.umask(0)
    try:
        private = paths.PRIVATE / options.subject.uid
        _make(private)
        give_to_qemu(private)
        for directory in (
            options.ephemeral / "cloud-init-data",
            options.ephemeral / "ignition-data",
            options.ephemeral / "disk-data",
            options.container_disks,
            options.hotplug_disks,
            options.sockets,
            paths.LIBVIRT_RUN,
            paths.EMPTY_DISKS,
            paths.CLOUD_INIT,
            paths.VMI_DISKS,
        ):
            _make(directory)
        for directory in _DISKS:
            _make(directory)
            directory.chmod(_DISKS_MODE)
            give_to_qemu(directory)
        if not options.nonroot:
            console = paths.serial_log(options.subject.uid)
            console.touch(mode=0o644)
            give_to_qemu(console)
    finally:
        os.umask(umask)


def _make(directory: Path) -> None:
    """Make a directory that everybody may look into; one that is there stays as it is."""
    directory.mkdir(mode=0o755, parents=True, exist_ok=True)
