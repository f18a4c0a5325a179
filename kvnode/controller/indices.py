"""The indices that the controllers' caches must have."""

from __future__ import annotations

from collections.abc import Iterable

from kvnode.controller.claimnames import claim_name
from kvnode.controller.meta import at
from kvnode.kube.objects import Object, controller_of, metadata
from kvnode.kube.store import Indexer

CONTROLLER = "controller"
"""By the UID of the owner that controls the object."""

NAMESPACE = "namespace"

INSTANCE = "instance"
"""By namespace and name of the VMI that the object is about: migrations, and claims for a VM's own state."""

STATE_FOR_LABEL = "persistent-state-for"


def by_controller(obj: Object) -> Iterable[str]:
    """The UID of the object's controller, if it has one."""
    owner = controller_of(obj)
    return (str(owner.get("uid", "")),) if owner else ()


def by_namespace(obj: Object) -> Iterable[str]:
    """The object's namespace."""
    return (str(metadata(obj).get("namespace") or ""),)


def by_migrated_instance(obj: Object) -> Iterable[str]:
    """The VMI that a migration is of."""
    name = (obj.get("spec") or {}).get("vmiName")
    return (f"{metadata(obj).get('namespace')}/{name}",) if name else ()


def by_kept_instance(obj: Object) -> Iterable[str]:
    """The VMI whose state a claim keeps: named by its label, in old clusters by the claim's name."""
    meta = metadata(obj)
    name = (meta.get("labels") or {}).get(STATE_FOR_LABEL)
    if name is None:
        prefix, _, name = str(meta.get("name", "")).partition(STATE_FOR_LABEL + "-")
        if prefix or not name:
            return ()
    return (f"{meta.get('namespace')}/{name}",)


VOLUME = "volume"
"""By namespace and name of a claim or DataVolume that a VMI's volumes, or a VM's, are on."""


def by_volume(obj: Object) -> Iterable[str]:
    """The claims and DataVolumes that a VM or a VMI is to have; a volume of another shape is on none."""
    volumes = at(obj, "spec", "template", "spec", "volumes") or at(obj, "spec", "volumes")
    namespace = metadata(obj).get("namespace")
    names = (
        {claim_name(one) for one in volumes if isinstance(one, dict)} if isinstance(volumes, list) else set()
    )
    names -= {""}
    return [f"{namespace}/{name}" for name in names]


NODE = "node"
"""By the name of the node that a VMI was handed over to."""


def by_node(obj: Object) -> Iterable[str]:
    """The VMI's node, once it has one."""
    node = (obj.get("status") or {}).get("nodeName")
    return (str(node),) if node else ()


INSTANCES: dict[str, Indexer] = {VOLUME: by_volume, NODE: by_node}
MACHINES: dict[str, Indexer] = {VOLUME: by_volume}
REVISIONS: dict[str, Indexer] = {CONTROLLER: by_controller}
PODS: dict[str, Indexer] = {CONTROLLER: by_controller, NAMESPACE: by_namespace}
CLAIMS: dict[str, Indexer] = {INSTANCE: by_kept_instance, NAMESPACE: by_namespace}
QUOTAS: dict[str, Indexer] = {NAMESPACE: by_namespace}
MIGRATIONS: dict[str, Indexer] = {INSTANCE: by_migrated_instance}
