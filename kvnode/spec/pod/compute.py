"""The compute container, in which the launcher and QEMU run (``rendercontainer.go``)."""

from __future__ import annotations

from typing import Any

from kvnode.spec.pod.command import launcher_command
from kvnode.spec.pod.logging import logging_variables
from kvnode.spec.pod.paths import PRIVATE_DIR
from kvnode.spec.pod.probes import container_probe
from kvnode.spec.pod.resources import compute_resources
from kvnode.spec.pod.security import compute_security_context
from kvnode.spec.pod.source import PodSource
from kvnode.spec.pod.volumes import PodVolumes

TERMINATION_MESSAGE_POLICY = "FallbackToLogsOnError"


def compute_container(source: PodSource, volumes: PodVolumes) -> dict[str, Any]:
    """The container named ``compute``."""
    made = {
        "name": "compute",
        "image": source.settings.launcher_image,
        "imagePullPolicy": source.config.image_pull_policy,
        "command": launcher_command(source),
        "env": _environment(source, volumes),
        "ports": _ports(source),
        "resources": compute_resources(source),
        "securityContext": compute_security_context(source),
        "terminationMessagePolicy": TERMINATION_MESSAGE_POLICY,
        "volumeDevices": volumes.devices,
        "volumeMounts": volumes.mounts,
    }
    for name in ("readinessProbe", "livenessProbe"):
        if name in source.spec:
            made[name] = container_probe(source.spec[name], source)
    return made


def user_environment(user: int) -> list[dict[str, Any]]:
    """Where a user other than root finds what root has below its home."""
    if not user:
        return []
    return [
        {"name": "XDG_CACHE_HOME", "value": PRIVATE_DIR},
        {"name": "XDG_CONFIG_HOME", "value": PRIVATE_DIR},
        {"name": "XDG_RUNTIME_DIR", "value": "/var/run"},
    ]


def _environment(source: PodSource, volumes: PodVolumes) -> list[dict[str, Any]]:
    variables = user_environment(source.user)
    if volumes.shared_paths:
        variables.append({"name": "SHARED_FILESYSTEM_PATHS", "value": ":".join(volumes.shared_paths)})
    variables += logging_variables(source)
    variables.append({"name": "POD_NAME", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}})
    return variables


def _ports(source: PodSource) -> list[dict[str, Any]]:
    """Every port that an interface forwards; of TCP if it does not say."""
    made = []
    for interface in source.interfaces:
        for port in interface.get("ports", ()):
            entry = {"containerPort": port.get("port", 0), "protocol": port.get("protocol") or "TCP"}
            made.append({"name": port["name"], **entry} if port.get("name") else entry)
    return made
