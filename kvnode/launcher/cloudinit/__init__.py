"""Cloud-init: user data, network data and metadata on an ISO that cloud-init finds by its label.

Two data sources: NoCloud and ConfigDrive (``pkg/cloud-init``). What a volume says is read before the domain is
defined, the ISO written after it: a ConfigDrive tells the addresses that libvirt gave to tagged devices.
"""

from __future__ import annotations

from kvnode.launcher.cloudinit.data import CloudInitData, read
from kvnode.launcher.cloudinit.devices import tagged_devices
from kvnode.launcher.cloudinit.image import generate, generate_empty, iso_path, prepare
from kvnode.launcher.cloudinit.metadata import Metadata

__all__ = [
    "CloudInitData",
    "Metadata",
    "generate",
    "generate_empty",
    "iso_path",
    "prepare",
    "read",
    "tagged_devices",
]
