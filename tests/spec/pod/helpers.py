"""Instances and their pods, as briefly as tests can say it."""

from __future__ import annotations

from typing import Any

from kvnode.spec.pod import render_launcher_pod

MIB = 2**20
GIB = 2**30


def instance(**spec: Any) -> dict[str, Any]:
    """A VMI ``t`` in ``ns1``, run by user 107; ``devices``, ``labels``, ``annotations`` and ``status`` go where they
    belong, and so do the members of a domain.
    """
    metadata = {"name": "t", "namespace": "ns1", "uid": "u-1"}
    metadata |= {key: spec.pop(key) for key in ("name", "labels", "annotations") if key in spec}
    status = {"runtimeUser": 107, **spec.pop("status", {})}
    members = ("cpu", "memory", "resources", "firmware", "features", "machine", "launchSecurity")
    domain = {key: spec.pop(key) for key in (*members, "ioThreads", "ioThreadsPolicy") if key in spec}
    domain["devices"] = spec.pop("devices", {})
    return {"metadata": metadata, "spec": {"domain": domain, **spec}, "status": status}


def pod(vmi: dict[str, Any], config: dict[str, Any] | None = None, **arguments: Any) -> dict[str, Any]:
    """The pod of a VMI on amd64."""
    return render_launcher_pod(vmi, "amd64", config, **arguments)


def compute(vmi: dict[str, Any], config: dict[str, Any] | None = None, **arguments: Any) -> dict[str, Any]:
    """The pod's first container."""
    made: dict[str, Any] = pod(vmi, config, **arguments)["spec"]["containers"][0]
    assert made["name"] == "compute"
    return made


def named(items: list[dict[str, Any]], name: str) -> dict[str, Any]:
    """The one item of that name."""
    (found,) = (item for item in items if item["name"] == name)
    return found


def gates(*on: str, off: tuple[str, ...] = (), **developer: Any) -> dict[str, Any]:
    """A configuration with these feature gates on and off."""
    return {
        "developerConfiguration": {"featureGates": list(on), "disabledFeatureGates": list(off), **developer}
    }
