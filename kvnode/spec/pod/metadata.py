"""A launcher pod's name, labels, annotations and owner (``template.go:717-725,1539-1575,1726-1740``)."""

from __future__ import annotations

import hashlib
import json
from typing import Any

from kvnode.api.names import (
    API_VERSION,
    APP_LABEL,
    CREATED_BY_LABEL,
    DOMAIN_ANNOTATION,
    LAUNCHER_APP,
    VIRTUAL_MACHINE_INSTANCE,
    VIRTUAL_MACHINE_INSTANCE_ID_LABEL,
    VIRTUAL_MACHINE_NAME_LABEL,
)
from kvnode.spec.pod.networks import network_annotations
from kvnode.spec.pod.source import PodSource

ISTIO_INJECT = "sidecar.istio.io/inject"
SKIP_BACKUP_HOOKS_ANNOTATION = "kubevirt.io/skip-backup-hooks"
MEMORY_OVERHEAD_ANNOTATION = "kubevirt.io/memory-overhead-bytes"
EPHEMERAL_PROVISIONING_ANNOTATION = "kubevirt.io/ephemeral-provisioning"

_KEPT_FROM_POD = (
    "kubectl.kubernetes.io",
    "kubevirt.io/storage-observed-api-version",
    "kubevirt.io/latest-observed-api-version",
)
_LONGEST_LABEL = 63
_LONGEST_NAME = 253
_HASH_LENGTH = 8
_TRUE = frozenset({"1", "t", "T", "true", "TRUE", "True"})


def pod_metadata(source: PodSource) -> dict[str, Any]:
    """``metadata`` of the pod; the API server makes the name from ``generateName``."""
    return {
        "generateName": f"{_name_prefix(source.name)}-",
        "labels": _labels(source),
        "annotations": _annotations(source),
        "ownerReferences": [
            {
                "apiVersion": API_VERSION,
                "kind": VIRTUAL_MACHINE_INSTANCE,
                "name": source.name,
                "uid": source.uid,
                "controller": True,
                "blockOwnerDeletion": True,
            }
        ],
    }


def _name_prefix(name: str) -> str:
    """The pod's name without its end. The API server keeps less of it, and refuses more than a name may have."""
    return f"{LAUNCHER_APP}-{name}"[: _LONGEST_NAME - 1].rstrip("-.")


def hostname(source: PodSource) -> str:
    """The guest's hostname: as asked for, or the name up to its first dot (``pkg/util/net/dns/sanitize.go``)."""
    asked = source.spec.get("hostname")
    # What is cut off must not leave a dash at the end: it is a label's value too.
    return str(asked) if asked else source.name.partition(".")[0][:_LONGEST_LABEL].rstrip("-")


def instance_id(name: str) -> str:
    """A VMI's name as a label's value: shortened and made unique where it is too long.

    ``pkg/apimachinery/labels.go:31``
    """
    if len(name) <= _LONGEST_LABEL:
        return name
    digest = hashlib.sha1(name.encode(), usedforsecurity=False).hexdigest()
    return f"{name[: _LONGEST_LABEL - _HASH_LENGTH - 1]}-{digest[:_HASH_LENGTH]}"


def istio_injected(source: PodSource) -> bool:
    """Whether Istio puts its proxy into the pod."""
    return source.annotations.get(ISTIO_INJECT, "").lower() == "true"


def _labels(source: PodSource) -> dict[str, str]:
    labels = {
        **source.labels,
        APP_LABEL: LAUNCHER_APP,
        CREATED_BY_LABEL: source.uid,
        VIRTUAL_MACHINE_NAME_LABEL: hostname(source),
        VIRTUAL_MACHINE_INSTANCE_ID_LABEL: instance_id(source.name),
    }
    if ISTIO_INJECT in source.annotations:
        labels[ISTIO_INJECT] = source.annotations[ISTIO_INJECT]
    return labels


def _annotations(source: PodSource) -> dict[str, str]:
    annotations = {DOMAIN_ANNOTATION: source.name}
    annotations |= {k: v for k, v in source.annotations.items() if not k.startswith(_KEPT_FROM_POD)}
    annotations |= {
        "kubectl.kubernetes.io/default-container": "compute",
        "kubevirt.io/migrationTransportUnix": "true",
        "descheduler.alpha.kubernetes.io/request-evict-only": "",
    }
    if source.settings.network_annotations:
        annotations |= network_annotations(source)
    annotations |= _backup_hooks(source)
    if source.surroundings.temporary:
        annotations[EPHEMERAL_PROVISIONING_ANNOTATION] = "true"
    if source.config.gate("VmiMemoryOverheadReport"):
        annotations[MEMORY_OVERHEAD_ANNOTATION] = str(source.overhead.value)
    return annotations


def _backup_hooks(source: PodSource) -> dict[str, str]:
    """Velero freezes the guest's file systems around a backup (``pkg/storage/pod/annotations/generator.go``)."""
    said = source.annotations.get(SKIP_BACKUP_HOOKS_ANNOTATION)
    if source.settings.skip_backup_hooks if said is None else said in _TRUE:
        return {}
    return {
        "pre.hook.backup.velero.io/container": "compute",
        "pre.hook.backup.velero.io/command": _freezer("--freeze", source),
        "pre.hook.backup.velero.io/timeout": "60s",
        "post.hook.backup.velero.io/container": "compute",
        "post.hook.backup.velero.io/command": _freezer("--unfreeze", source),
    }


def _freezer(action: str, source: PodSource) -> str:
    return json.dumps(
        ["/usr/bin/virt-freezer", action, "--name", source.name, "--namespace", source.namespace]
    )
