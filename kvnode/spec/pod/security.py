"""Security contexts of the pod and its containers (``template.go:374,1473``, ``rendercontainer.go:207``)."""

from __future__ import annotations

from typing import Any

from kvnode.spec.pod.source import NON_ROOT_USER, PodSource


def pod_security_context(source: PodSource) -> dict[str, Any]:
    """The pod's: its user, and the group that may use its volumes, which virtiofsd needs in any case."""
    context: dict[str, Any] = {"fsGroup": NON_ROOT_USER, "runAsUser": source.user}
    if source.non_root:
        context |= {"runAsGroup": source.user, "runAsNonRoot": True}
    if source.config.seccomp_profile is not None:
        context["seccompProfile"] = dict(source.config.seccomp_profile)
    if source.config.selinux_launcher_type:
        context["seLinuxOptions"] = {"type": source.config.selinux_launcher_type}
    return context


def compute_security_context(source: PodSource) -> dict[str, Any]:
    """Compute's: it may bind low ports and, as root, set priorities."""
    added = ["NET_BIND_SERVICE"] if source.non_root else ["NET_BIND_SERVICE", "SYS_NICE"]
    capabilities: dict[str, list[str]] = {"add": added}
    if source.non_root:
        capabilities["drop"] = ["ALL"]
    return {**user_context(source.user), "capabilities": capabilities}


def user_context(user: int) -> dict[str, Any]:
    """A container's that runs as `user`; only root's may gain rights."""
    if not user:
        return {"runAsUser": 0, "runAsNonRoot": False}
    return {"runAsUser": user, "runAsGroup": user, "runAsNonRoot": True, "allowPrivilegeEscalation": False}


def powerless_context(*, group: bool = False) -> dict[str, Any]:
    """A side container's that needs no rights at all; its group is the image's, or the user's own."""
    context: dict[str, Any] = {
        "runAsUser": NON_ROOT_USER,
        "runAsNonRoot": True,
        "allowPrivilegeEscalation": False,
        "capabilities": {"drop": ["ALL"]},
    }
    return context | ({"runAsGroup": NON_ROOT_USER} if group else {})
