"""Firmware identity."""

from __future__ import annotations

import uuid
from typing import Any


def default_firmware(domain: dict[str, Any]) -> None:
    """Give the VM a random UUID if it has none (``api/core/v1/defaults.go:95``)."""
    firmware = domain.setdefault("firmware", {})
    firmware["uuid"] = firmware.get("uuid") or str(uuid.uuid4())
