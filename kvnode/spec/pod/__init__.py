"""The launcher pod of a VMI."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from kvnode.spec.config import ClusterConfig
from kvnode.spec.normal import normal_instance
from kvnode.spec.pod.explain import MemoryAccount, explain_memory
from kvnode.spec.pod.metadata import pod_metadata
from kvnode.spec.pod.podspec import pod_spec
from kvnode.spec.pod.scheduling import reservation_labels
from kvnode.spec.pod.settings import Claim, ClaimNotFoundError, LauncherSettings, Surroundings
from kvnode.spec.pod.source import PodSource
from kvnode.spec.pod.volumes import claim_fields

__all__ = [
    "Claim",
    "ClaimNotFoundError",
    "LauncherSettings",
    "MemoryAccount",
    "Surroundings",
    "claim_names",
    "explain_memory",
    "render_launcher_pod",
]

_DEFAULT_SETTINGS = LauncherSettings()
_ORDINARY = Surroundings()


def render_launcher_pod(
    vmi: Mapping[str, Any],
    architecture: str,
    config: Mapping[str, Any] | ClusterConfig | None = None,
    pvcs: Mapping[str, bool | Claim] | None = None,
    *,
    settings: LauncherSettings = _DEFAULT_SETTINGS,
    surroundings: Surroundings = _ORDINARY,
) -> dict[str, Any]:
    """The pod that runs a VMI's launcher, as pkg/virt-controller/services/template.go renders it.

    It has ``metadata`` and ``spec``; type and namespace are its creator's to name to the API server. A part of
    the launcher's timeout is random. Quantities are texts in canonical form. It shares nothing with the arguments.

    Args:
        vmi: a VirtualMachineInstance as a cluster stores it: defaulted and valid. It is not changed.
        architecture: that of a VM which names none.
        config: the cluster's settings, or ``spec.configuration`` of the KubeVirt object.
        pvcs: the claims of the VM's namespace by name: whether each is a block device, or a `Claim` with
            more. None: take every claim to be there, with a file system.
        settings: images, directories and habits of this installation.
        surroundings: what else the cluster knows of this pod: quotas, pinned images, the claim for state.

    Raises:
        ClaimNotFoundError: a volume's claim is not among `pvcs`.
        FieldError: a field has the wrong type; the VMI has no name or namespace; a host device is not
            permitted; a network binding plugin is not registered; a hook sidecar's annotation cannot be
            read; state must be kept, and `surroundings` name no claim for it.
    """
    source = PodSource.read(vmi, architecture, config, pvcs, settings=settings, surroundings=surroundings)
    spec = pod_spec(source)
    metadata = pod_metadata(source)
    metadata["labels"] |= dict.fromkeys(reservation_labels(source), "")
    return {"metadata": metadata, "spec": spec}


def claim_names(vmi: Mapping[str, Any]) -> list[str]:
    """The PersistentVolumeClaims that the volumes of a VMI lie on, each once.

    Raises:
        FieldError: a field has the wrong type.
    """
    named = [claim_fields(volume) for volume in normal_instance(vmi)["spec"].get("volumes", ())]
    return list(dict.fromkeys(claim[0] for claim in named if claim))
