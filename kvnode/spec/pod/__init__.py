"""The launcher pod of a VMI."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from kvnode.spec.config import ClusterConfig

__all__ = ["render_launcher_pod"]


def render_launcher_pod(
    vmi: Mapping[str, Any],
    architecture: str,
    config: Mapping[str, Any] | ClusterConfig | None = None,
    pvcs: Mapping[str, bool] | None = None,
) -> dict[str, Any]:
    """The pod that runs a VMI's launcher, as pkg/virt-controller/services/template.go renders it.

    `pvcs` tells for each claim whether it is a block device. Not there yet: raises NotImplementedError.
    """
    raise NotImplementedError("kvnode does not render launcher pods yet")
