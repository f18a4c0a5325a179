"""Ignition data: an annotation's text in a file that the domain hands to the firmware's configuration."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from kvnode.api.names import IGNITION_ANNOTATION
from kvnode.launcher import paths
from kvnode.launcher.errors import LauncherError
from kvnode.launcher.ownership import give_to_qemu


def prepare(vmi: Mapping[str, Any]) -> None:
    """Write the file whole, if there are data (``pkg/ignition/ignition.go:61``); raises LauncherError."""
    metadata = vmi["metadata"]
    data = (metadata.get("annotations") or {}).get(IGNITION_ANNOTATION)
    if not data:
        return
    target = paths.ignition_file(metadata["namespace"], metadata["name"])
    staging = target.with_name(target.name + ".staging")
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        staging.write_bytes(str(data).encode("utf-8", "replace"))
        give_to_qemu(staging)
        staging.replace(target)
    except OSError as error:
        raise LauncherError(
            "IgnitionFailed", f"the ignition data cannot be written: {error.strerror}"
        ) from None
