"""Names of the claims that volumes are on."""

from __future__ import annotations

from typing import Any

Volume = dict[str, Any]


def claim_name(volume: Volume) -> str:
    """Name of the claim that a volume is on, "" for one that is on none."""
    for source, field in (
        ("dataVolume", "name"),
        ("persistentVolumeClaim", "claimName"),
        ("memoryDump", "claimName"),
    ):
        found = volume.get(source)
        if found is not None:
            return str(found.get(field) or "") if isinstance(found, dict) else ""
    return ""
