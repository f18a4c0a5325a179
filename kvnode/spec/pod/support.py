"""Requests and limits of the containers beside compute, which an administrator may set by their type."""

from __future__ import annotations

from kvnode.api.quantity import Quantity
from kvnode.spec.config import ClusterConfig
from kvnode.spec.fields import get_mapping, get_quantity, get_string

CONTAINER_DISK = "container-disk"
VIRTIOFS = "virtiofs"
SIDECAR = "sidecar"
GUEST_CONSOLE_LOG = "guest-console-log"

Amounts = dict[str, str]


def configured(config: ClusterConfig, container: str, kind: str, resource: str) -> str | None:
    """What ``supportContainerResources`` has for a container type; None: nothing, or a zero.

    ``pkg/virt-config/virt-config.go:318``. `kind` is ``requests`` or ``limits``.
    """
    for index, entry in enumerate(config.support_container_resources):
        path = f"spec.configuration.supportContainerResources[{index}]."
        if get_string(entry, "type", path) != container:
            continue
        resources = get_mapping(entry, "resources", path)
        amounts = get_mapping(resources, kind, path + "resources.")
        amount = get_quantity(amounts, resource, f"{path}resources.{kind}.")
        if amount:
            return str(amount)
    return None


def support_resources(
    config: ClusterConfig, container: str, requests: Amounts, limits: Amounts, *, guaranteed: bool
) -> dict[str, Amounts]:
    """CPU and memory of a side container: these defaults, or what is configured.

    A Guaranteed pod's containers all request as much as they are limited to.
    """
    requests, limits = dict(requests), dict(limits)
    for resource in ("cpu", "memory"):
        limit = configured(config, container, "limits", resource)
        if limit is not None:
            limits[resource] = limit
        request = configured(config, container, "requests", resource)
        if request is not None:
            requests[resource] = request
        if guaranteed:
            requests[resource] = limits[resource]
    return {"requests": _canonical(requests), "limits": _canonical(limits)}


def _canonical(amounts: Amounts) -> Amounts:
    return {resource: str(Quantity(amount)) for resource, amount in amounts.items()}
