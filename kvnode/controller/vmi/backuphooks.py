"""Annotations by which Velero freezes a guest's file systems (``pkg/storage/pod/annotations/generator.go``)."""

from __future__ import annotations

import json

from kvnode.controller.meta import annotations_of, name_of, namespace_of
from kvnode.controller.names import BACKUP_HOOK_ANNOTATIONS, SKIP_BACKUP_HOOKS_ANNOTATION
from kvnode.kube.objects import Object

_TRUE = ("1", "t", "T", "true", "True", "TRUE")


def backup_hooks(vmi: Object, skip: bool) -> dict[str, str]:
    """The annotations of the VMI's pod; none when the VMI or, where that says nothing, the cluster says so."""
    said = annotations_of(vmi).get(SKIP_BACKUP_HOOKS_ANNOTATION)
    if skip if said is None else said in _TRUE:
        return {}
    values = ("compute", _freezer("--freeze", vmi), "60s", "compute", _freezer("--unfreeze", vmi))
    return dict(zip(BACKUP_HOOK_ANNOTATIONS, values, strict=True))


def _freezer(action: str, vmi: Object) -> str:
    return json.dumps(
        ["/usr/bin/virt-freezer", action, "--name", name_of(vmi), "--namespace", namespace_of(vmi)]
    )
