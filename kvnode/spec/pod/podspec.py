"""``spec`` of a launcher pod, put together of its parts (``template.go:717-800``)."""

from __future__ import annotations

import copy
from typing import Any

from kvnode.api.names import UNPAUSED_READINESS_GATE
from kvnode.spec.pod.command import GRACE_PERIOD_PADDING, grace_period
from kvnode.spec.pod.compute import compute_container
from kvnode.spec.pod.container_disks import image_containers, image_init_containers, pull_secrets
from kvnode.spec.pod.containers import console_log_container, sidecar_containers, virtiofs_containers
from kvnode.spec.pod.metadata import hostname, istio_injected
from kvnode.spec.pod.scheduling import affinity, node_selector
from kvnode.spec.pod.security import pod_security_context
from kvnode.spec.pod.source import PodSource
from kvnode.spec.pod.volumes import pod_volumes

_COPIED = (
    "dnsConfig",
    "dnsPolicy",
    "priorityClassName",
    "schedulerName",
    "subdomain",
    "tolerations",
    "topologySpreadConstraints",
)


def pod_spec(source: PodSource) -> dict[str, Any]:
    """The whole of ``spec``; fields that say nothing are left out.

    Raises:
        FieldError: see `kvnode.render_launcher_pod`.
    """
    volumes = pod_volumes(source)
    sidecars, sidecar_volumes = sidecar_containers(source, volumes)
    # Compute is the first: what injects devices into a pod does so into its first container.
    containers = [
        compute_container(source, volumes),
        *image_containers(source),
        *virtiofs_containers(source),
        *sidecars,
    ]
    _relax_selinux(containers, source)
    made = {
        "restartPolicy": "Never",
        "hostname": hostname(source),
        "terminationGracePeriodSeconds": grace_period(source) + GRACE_PERIOD_PADDING,
        "enableServiceLinks": False,
        "readinessGates": [{"conditionType": UNPAUSED_READINESS_GATE}],
        "securityContext": pod_security_context(source),
        "nodeSelector": node_selector(source),
        "affinity": affinity(source),
        **_service_account(source),
        "runtimeClassName": source.config.default_runtime_class,
        "imagePullSecrets": pull_secrets(source),
        "resourceClaims": copy.deepcopy(source.spec.get("resourceClaims", [])),
        **{name: copy.deepcopy(source.spec[name]) for name in _COPIED if name in source.spec},
        "volumes": [*volumes.volumes, *sidecar_volumes],
        "initContainers": [*console_log_container(source), *image_init_containers(source)],
        "containers": [_without_empty(container) for container in containers],
    }
    return _without_empty(made)


def _service_account(source: PodSource) -> dict[str, Any]:
    """The account's token is mounted only where a volume shows it to the guest, or Istio's proxy needs it."""
    of_volumes = [
        v["serviceAccount"].get("serviceAccountName", "") for v in source.volumes if "serviceAccount" in v
    ]
    named = of_volumes[0] if of_volumes else ""
    return {
        "serviceAccountName": source.spec.get("serviceAccountName") or named,
        "automountServiceAccountToken": bool(named) or istio_injected(source),
    }


def _relax_selinux(containers: list[dict[str, Any]], source: PodSource) -> None:
    """Let compute reach the other containers under Docker with SELinux (``template.go:1479-1517``)."""
    if not source.config.gate("DockerSELinuxMCSWorkaround"):
        return
    for container in containers[1:]:
        options = {"type": source.config.selinux_launcher_type, "level": "s0"}
        container["securityContext"]["seLinuxOptions"] = _without_empty(options)


def _without_empty(made: dict[str, Any]) -> dict[str, Any]:
    """Without the members that an API server would not keep, either."""
    return {name: value for name, value in made.items() if value not in ("", [], {})}
