"""Ephemeral volumes: a writable qcow2 layer over a claim that stays as it is, gone with the VM."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from kvnode.launcher import paths
from kvnode.launcher.errors import LauncherError
from kvnode.launcher.image import create_qcow2

#: Where block devices of claims appear in the pod, by their volumes' names.
BLOCK_DEVICES = Path("/dev")


def prepare(vmi: Mapping[str, Any]) -> None:
    """Create the overlays (``pkg/ephemeral-disk/ephemeral-disk.go:126``); one that exists keeps its content.

    The claim is a block device ``/dev/<volume>``, or holds a raw ``disk.img``. Raises LauncherError.
    """
    for volume in vmi["spec"].get("volumes") or []:
        if volume.get("ephemeral") is None:
            continue
        name = volume["name"]
        backing = _backing(name)
        if not backing.is_file() and not backing.is_block_device():
            raise LauncherError("DiskFailed", f"volume {name}: {backing} of the claim is not there")
        create_qcow2(paths.overlay(name), backing=backing, backing_format="raw")


def _backing(volume: str) -> Path:
    device = BLOCK_DEVICES / volume
    return device if device.is_block_device() else paths.host_disk(volume, "disk.img")
