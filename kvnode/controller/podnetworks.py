"""A pod's networks, as Multus tells them, and the names of its interfaces (``pkg/network/{multus,namescheme}``)."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from typing import Any

from kvnode.controller.meta import annotations_of
from kvnode.kube.objects import Object
from kvnode.spec.pod.networks import pod_interface_name

STATUS_ANNOTATION = "k8s.v1.cni.cncf.io/network-status"
PRIMARY = "eth0"

Network = dict[str, Any]


def is_ordinal(name: str) -> bool:
    """Whether a secondary interface is numbered: ``net1``."""
    return re.fullmatch(r"net[0-9]+", name) is not None


def secondary_networks(networks: Iterable[Network]) -> list[Network]:
    """The networks that Multus attaches beside the pod's own."""
    return [one for one in networks if one.get("multus") is not None and not one["multus"].get("default")]


def network_statuses(pod: Object) -> list[dict[str, Any]]:
    """What Multus says of the pod's interfaces; nothing when it says what cannot be read."""
    try:
        found = json.loads(annotations_of(pod).get(STATUS_ANNOTATION) or "[]")
    except ValueError:
        return []
    return [one for one in found if isinstance(one, dict)] if isinstance(found, list) else []


def primary_interface(statuses: Iterable[dict[str, Any]]) -> str:
    """Name of the pod's own interface."""
    return next(
        (str(one["interface"]) for one in statuses if one.get("default") and one.get("interface")), PRIMARY
    )


def secondary_interfaces(networks: Iterable[Network], statuses: Iterable[dict[str, Any]]) -> dict[str, str]:
    """Network -> name of its interface in the pod, for those that Multus attaches."""
    numbered = any(is_ordinal(str(one.get("interface") or "")) for one in statuses)
    found = secondary_networks(networks)
    return {
        one["name"]: f"net{number}" if numbered else pod_interface_name(one["name"])
        for number, one in enumerate(found, start=1)
    }
