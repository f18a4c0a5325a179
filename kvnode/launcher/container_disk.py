"""Container disks: a writable qcow2 layer over the image that was put in place, gone with the VM."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from kvnode.launcher import paths
from kvnode.launcher.errors import LauncherError
from kvnode.launcher.image import create_qcow2, run_tool


def prepare(vmi: Mapping[str, Any]) -> None:
    """Create the overlays (``pkg/container-disk/container-disk.go``, ``CreateEphemeralImages``).

    The image of volume number i is expected at ``container-disks/disk_<i>.img``. Raises LauncherError.
    """
    for index, volume in enumerate(vmi["spec"].get("volumes") or []):
        if not volume.get("containerDisk"):
            continue
        backing = paths.container_disk(index)
        if not backing.is_file():
            raise LauncherError(
                "DiskFailed", f"volume {volume['name']}: the image of the container disk is not there"
            )
        overlay = paths.overlay(volume["name"])
        create_qcow2(overlay, backing=backing, backing_format=_format(str(backing)))


def _format(image: str) -> str:
    answer = json.loads(run_tool(["qemu-img", "info", "--output=json", image], "DiskFailed"))
    return str(answer.get("format", "raw"))
