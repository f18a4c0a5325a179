"""Volumes, their claims and their DataVolumes (``pkg/storage/types``)."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from kvnode.controller import conditions
from kvnode.controller.claimnames import claim_name
from kvnode.controller.meta import at
from kvnode.controller.ports import Caches
from kvnode.kube.objects import Object, controller_of

POPULATED = ("Succeeded", "PendingPopulation")
WAIT_FOR_FIRST_CONSUMER = "WaitForFirstConsumer"
DATA_VOLUME = "DataVolume"

Volume = dict[str, Any]


def is_hotplugged(volume: Volume) -> bool:
    """Whether a volume may be put in and taken out of a running VM."""
    sources = ("dataVolume", "persistentVolumeClaim", "memoryDump")
    return any((volume.get(source) or {}).get("hotpluggable") for source in sources)


def is_declared_hotplug(volume: Volume) -> bool:
    """Whether a volume comes and goes with its mention in the VM."""
    return any(
        (volume.get(source) or {}).get("hotpluggable") for source in ("dataVolume", "persistentVolumeClaim")
    )


def phase_of(data_volume: Object) -> str:
    """A DataVolume's phase."""
    return str(at(data_volume, "status", "phase") or "")


def data_volumes_of(caches: Caches, namespace: str, volumes: Iterable[Volume]) -> list[Object]:
    """The DataVolumes behind the volumes of a VMI, named or owners of a named claim."""
    found = (caches.data_volumes.get(f"{namespace}/{name}") for name in _names(caches, namespace, volumes))
    return [one for one in found if one is not None]


def _names(caches: Caches, namespace: str, volumes: Iterable[Volume]) -> Iterable[str]:
    for volume in volumes:
        if volume.get("persistentVolumeClaim") is not None:
            claim = caches.claims.get(f"{namespace}/{claim_name(volume)}")
            owner = controller_of(claim) if claim else None
            if owner and owner.get("kind") == DATA_VOLUME:
                yield str(owner.get("name"))
        elif volume.get("dataVolume") is not None:
            yield claim_name(volume)


def named_data_volumes(caches: Caches, namespace: str, volumes: Iterable[Volume]) -> Iterable[Object]:
    """The DataVolumes that volumes name."""
    for volume in volumes:
        if volume.get("dataVolume") is not None:
            found = caches.data_volumes.get(f"{namespace}/{claim_name(volume)}")
            if found is not None:
                yield found


def has_failed(data_volume: Object) -> bool:
    """Whether its import has failed, or has stopped for an error."""
    running = conditions.find(data_volume, "Running") or {}
    stopped = running.get("status") == "False" and running.get("reason") in ("Error", "ImagePullFailed")
    return phase_of(data_volume) == "Failed" or stopped


def is_provisioning(data_volume: Object) -> bool:
    """Whether it is on its way to be filled."""
    phase = phase_of(data_volume)
    if phase in POPULATED:
        return False
    return phase != WAIT_FOR_FIRST_CONSUMER or conditions.has(data_volume, "Bound", "True")


def has_unbound_claim(caches: Caches, namespace: str, volumes: Iterable[Volume]) -> bool:
    """Whether one of the claims that are there is not bound."""
    for volume in volumes:
        name = claim_name(volume)
        claim = caches.claims.get(f"{namespace}/{name}") if name else None
        if claim is not None and at(claim, "status", "phase") != "Bound":
            return True
    return False
