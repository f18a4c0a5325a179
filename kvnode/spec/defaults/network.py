"""The pod network, for a VM that names no network."""

from __future__ import annotations

from typing import Any

from kvnode.api.errors import FieldError
from kvnode.spec.config import ClusterConfig

_SETTING = "spec.configuration.network."


def default_network(spec: dict[str, Any], config: ClusterConfig) -> None:
    """Attach a VM without networks and interfaces to the pod network, unless it asks for none.

    ``pkg/network/vmispec/defaults.go:33``.

    Raises:
        FieldError: the cluster's default binding is not permitted or no longer exists.
    """
    devices = spec["domain"]["devices"]
    if devices.get("autoattachPodInterface") is False or spec.get("networks") or devices.get("interfaces"):
        return
    binding = config.default_network_interface
    if binding == "bridge" and not config.permit_bridge_on_pod_network:
        raise FieldError(
            _SETTING + "defaultNetworkInterface",
            "the default binding is bridge, but permitBridgeInterfaceOnPodNetwork is false: "
            "set defaultNetworkInterface to masquerade, or give the VM an interface",
        )
    if binding == "slirp":
        raise FieldError(
            _SETTING + "defaultNetworkInterface",
            "the slirp binding no longer exists: set bridge or masquerade",
        )
    devices["interfaces"] = [{"name": "default", binding: {}}]
    spec["networks"] = [{"name": "default", "pod": {}}]
