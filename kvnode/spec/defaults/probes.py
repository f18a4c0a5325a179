"""Probe timings."""

from __future__ import annotations

from typing import Any

_SECONDS = {"timeoutSeconds": 1, "periodSeconds": 10, "successThreshold": 1, "failureThreshold": 3}


def default_probes(spec: dict[str, Any]) -> None:
    """Replace timings (seconds) and thresholds below one (``api/core/v1/defaults.go:137-157``)."""
    for name in ("readinessProbe", "livenessProbe"):
        if name in spec:
            probe = spec[name]
            for setting, default in _SECONDS.items():
                if probe.get(setting, 0) < 1:
                    probe[setting] = default
