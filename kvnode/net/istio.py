"""What a mesh's sidecar needs to keep for itself in the pod (``pkg/network/istio``)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

LOOPBACK = "127.0.0.6"
"""Where the sidecar's own connections to the workload come from."""

RESERVED_PORTS = (15000, 15001, 15004, 15006, 15008, 15009, 15020, 15021, 15053, 15090)
"""The sidecar's own TCP ports, which are not the guest's."""

NON_PROXIED_PORTS = (22,)
"""TCP ports that go to the guest past the sidecar."""

_ANNOTATION = "sidecar.istio.io/inject"


def is_enabled(annotations: Mapping[str, Any]) -> bool:
    """Tell whether a sidecar is put beside a VMI with these annotations."""
    return str(annotations.get(_ANNOTATION, "")).lower() == "true"
