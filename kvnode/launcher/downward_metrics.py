"""The disk on which a guest reads metrics of its machine: made empty, written by the agent.

The format is vhostmd's: a header of four big-endian words (signature, lock, sum of the body's bytes, its
length), then the body in XML (``pkg/downwardmetrics/vhostmd/disk.go``).
"""

from __future__ import annotations

import struct
from collections.abc import Mapping
from typing import Any

from kvnode.launcher import paths
from kvnode.launcher.errors import LauncherError
from kvnode.launcher.ownership import give_to_qemu

_SIZE = 256 << 10
_HEADER = struct.Struct(">4siii")
_SIGNATURE = b"mvbd"
_UNLOCKED = 0
_NO_METRICS = b"<metrics></metrics>\n"


def prepare(vmi: Mapping[str, Any]) -> None:
    """Make the disk if the VMI has such a volume; raises LauncherError."""
    if not any(volume.get("downwardMetrics") is not None for volume in vmi["spec"].get("volumes") or []):
        return
    disk = paths.DOWNWARD_METRIC_DISK
    staging = disk.with_name(disk.name + ".staging")
    header = _HEADER.pack(_SIGNATURE, _UNLOCKED, sum(_NO_METRICS), len(_NO_METRICS))
    try:
        disk.parent.mkdir(parents=True, exist_ok=True)
        # The directory is QEMU's user's, who may have laid a link in the disk's place before an earlier start failed.
        staging.unlink(missing_ok=True)
        with staging.open("xb") as file:
            file.write((header + _NO_METRICS).ljust(_SIZE, b"\0"))
        give_to_qemu(staging)
        staging.replace(disk)
    except OSError as error:
        raise LauncherError(
            "DiskFailed", f"the disk of downward metrics cannot be made: {error.strerror}"
        ) from None
