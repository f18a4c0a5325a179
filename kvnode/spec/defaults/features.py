"""Features and timers: one that is there is on, unless it says that it is off.

``api/core/v1/defaults.go:8-66`` and ``zz_generated.defaults.go:193-310``.
"""

from __future__ import annotations

from typing import Any

SPINLOCK_RETRIES = 4096
"""How often a spinlock is tried before the hypervisor is told, for Windows guests."""


TIMERS = ("hpet", "kvm", "pit", "rtc", "hyperv")

HYPERV_FEATURES = (
    "relaxed",
    "vapic",
    "spinlocks",
    "vpindex",
    "runtime",
    "synic",
    "synictimer",
    "reset",
    "vendorid",
    "frequencies",
    "reenlightenment",
    "tlbflush",
    "ipi",
    "evmcs",
)

HYPERV_PARTS = (("synictimer", "direct"), ("tlbflush", "direct"), ("tlbflush", "extended"))
"""Features with a part that has a switch of its own."""


def default_acpi(spec: dict[str, Any]) -> None:
    """ACPI is off on s390x, which has none, and on elsewhere (``pkg/defaults/s390x.go``)."""
    acpi = spec["domain"].setdefault("features", {}).setdefault("acpi", {})
    acpi.setdefault("enabled", spec["architecture"] != "s390x")


def default_timers(domain: dict[str, Any]) -> None:
    """A timer that is named is present."""
    timers = domain.get("clock", {}).get("timer", {})
    for name in TIMERS:
        if name in timers:
            timers[name].setdefault("present", True)


def default_feature_states(domain: dict[str, Any]) -> None:
    """Turn on the features that are named, the Hyper-V ones and their parts included."""
    features = domain["features"]
    for name in ("apic", "smm", "pvspinlock"):
        if name in features:
            features[name].setdefault("enabled", True)
    hyperv = features.get("hyperv", {})
    for name in HYPERV_FEATURES:
        if name in hyperv:
            hyperv[name].setdefault("enabled", True)
    for name, part in HYPERV_PARTS:
        if part in hyperv.get(name, ()):
            hyperv[name][part].setdefault("enabled", True)
    spinlocks = hyperv.get("spinlocks")
    if spinlocks and spinlocks["enabled"]:
        spinlocks.setdefault("spinlocks", SPINLOCK_RETRIES)
