"""Hyper-V features that need another one (``pkg/defaults/hyperv.go``)."""

from __future__ import annotations

from typing import Any

REQUIREMENTS = (
    ("evmcs", "vapic"),
    ("ipi", "vpindex"),
    ("tlbflush", "vpindex"),
    ("synictimer", "synic"),
    ("synic", "vpindex"),
)
"""Feature and the one that it needs; what a requirement itself needs comes later in the order."""


def require_hyperv_dependencies(domain: dict[str, Any]) -> None:
    """Turn on what the enabled Hyper-V features need; enlightened VMCS needs the CPU feature vmx, too.

    Nothing more is changed once a requirement turns out to be off: validation reports it.
    """
    hyperv = domain["features"].get("hyperv")
    if not hyperv:
        return
    for feature, requirement in REQUIREMENTS:
        if not hyperv.get(feature, {}).get("enabled", False):
            continue
        if not hyperv.setdefault(requirement, {}).setdefault("enabled", True):
            return
    if hyperv.get("evmcs", {}).get("enabled", False):
        _require_cpu_feature(domain["cpu"], "vmx")


def _require_cpu_feature(cpu: dict[str, Any], name: str) -> None:
    features = cpu.setdefault("features", [])
    for feature in features:
        if feature.get("name") == name:
            feature["policy"] = "require"
            return
    features.append({"name": name, "policy": "require"})
