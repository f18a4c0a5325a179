"""VMIs with a cloud-init volume."""

from __future__ import annotations

import base64
from typing import Any

UUID = "5d307ca9-b3ef-428c-8861-06e72d69f223"


def vmi(
    source: dict[str, Any], name: str = "testvmi", kind: str = "cloudInitNoCloud", **spec: Any
) -> dict[str, Any]:
    """A VMI with one cloud-init volume."""
    return {
        "metadata": {"name": name, "namespace": "ns1"},
        "spec": {
            "domain": {"firmware": {"uuid": UUID}},
            "volumes": [{"name": "ci", kind: source}],
            **spec,
        },
    }


def encoded(text: str) -> str:
    """Base64 of ``text``."""
    return base64.b64encode(text.encode()).decode()
