"""Defaults of amd64 (``pkg/defaults/amd64.go``)."""

from __future__ import annotations

from typing import Any

from kvnode.spec.defaults.storage import default_disk_bus, default_watchdog_action


def default_domain(domain: dict[str, Any]) -> None:
    """Disks on SATA, which guests support out of the box, and the i6300esb watchdog."""
    default_disk_bus(domain, "sata")
    default_watchdog_action(domain, "i6300esb")
