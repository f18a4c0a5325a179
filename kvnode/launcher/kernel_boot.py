"""Kernel boot: kernel and initrd that were put in place of a container's."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from kvnode.launcher import paths
from kvnode.launcher.errors import LauncherError


def prepare(vmi: Mapping[str, Any]) -> None:
    """Check that the files that the domain names are there (``pkg/container-disk/container-disk.go:108``)."""
    firmware = vmi["spec"].get("domain", {}).get("firmware") or {}
    container = (firmware.get("kernelBoot") or {}).get("container") or {}
    for key in ("kernelPath", "initrdPath"):
        wanted = container.get(key)
        if wanted and not (paths.KERNEL_BOOT / Path(str(wanted)).name).is_file():
            raise LauncherError(
                "KernelBootFailed", f"kernelBoot.container.{key}: {wanted} is not in the image"
            )
