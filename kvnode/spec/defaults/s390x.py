"""Defaults of s390x (``pkg/defaults/s390x.go``)."""

from __future__ import annotations

from typing import Any

from kvnode.spec.defaults.storage import default_disk_bus, default_watchdog_action


def default_domain(domain: dict[str, Any]) -> None:
    """Disks on virtio, and the diag288 watchdog."""
    default_disk_bus(domain, "virtio")
    default_watchdog_action(domain, "diag288")
