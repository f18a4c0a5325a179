"""Empty disks: a sparse qcow2 image each, gone with the VM."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from kvnode.api.quantity import Quantity
from kvnode.launcher import paths
from kvnode.launcher.errors import LauncherError
from kvnode.launcher.image import create_qcow2, whole_mebibytes


def prepare(vmi: Mapping[str, Any]) -> None:
    """Create the images (``pkg/emptydisk/emptydisk.go:37``); one that exists keeps its content.

    Sizes are rounded down to whole mebibytes. Raises LauncherError when that leaves nothing.
    """
    for volume in vmi["spec"].get("volumes") or []:
        source = volume.get("emptyDisk")
        if source is None:
            continue
        try:
            size = whole_mebibytes(Quantity(source.get("capacity") or "0").value)
        except (ValueError, TypeError):
            size = 0
        if size <= 0:
            raise LauncherError(
                "DiskFailed", f"volume {volume['name']}: emptyDisk.capacity must be 1Mi or more"
            )
        create_qcow2(paths.empty_disk(volume["name"]), size=size)
