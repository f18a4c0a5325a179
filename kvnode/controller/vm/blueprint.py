"""The VMI that a VM asks for (``vm.go:1868-1948``)."""

from __future__ import annotations

import copy
from typing import Any

from kvnode.api.names import API_VERSION, VIRTUAL_MACHINE, VIRTUAL_MACHINE_INSTANCE
from kvnode.controller import names
from kvnode.controller.meta import at, controller_reference, finalizers, name_of, namespace_of, spec_of
from kvnode.controller.vm.firmware import legacy_uuid
from kvnode.controller.vm.requests import wants_paused_start
from kvnode.kube.objects import Object, metadata
from kvnode.spec.config import ClusterConfig
from kvnode.spec.defaults.network import default_network
from kvnode.spec.defaults.storage import disks_for_volumes

_UNFINISHED_DUMP = ("Associating", "InProgress")


def instance_for(vm: Object, revision: str, config: ClusterConfig) -> Object:
    """The VMI to be created for a VM, started from that revision.

    Raises:
        FieldError: the cluster's default network is not permitted.
    """
    template = spec_of(vm).get("template") or {}
    meta = copy.deepcopy(template.get("metadata") or {})
    spec = copy.deepcopy(template.get("spec") or {})
    meta.pop("generateName", None)
    meta |= {"name": name_of(vm), "namespace": namespace_of(vm)}
    meta["ownerReferences"] = [controller_reference(vm, VIRTUAL_MACHINE)]
    if wants_paused_start(vm):
        spec["startStrategy"] = "Paused"
    _leave_out_dump(spec, vm)
    _complete(spec, name_of(vm), config)
    notes = {**(meta.get("annotations") or {})}
    notes[names.GENERATION_ANNOTATION] = str(metadata(vm).get("generation") or 0)
    if spec_of(vm).get("runStrategy") == "WaitAsReceiver":
        notes[names.MIGRATION_TARGET_ANNOTATION] = "true"
    # Its own controller would write this next, and does nothing before.
    notes |= {
        names.LATEST_API_ANNOTATION: names.API_OBSERVED,
        names.STORAGE_API_ANNOTATION: names.API_OBSERVED,
    }
    meta["annotations"] = notes
    made = {"apiVersion": API_VERSION, "kind": VIRTUAL_MACHINE_INSTANCE, "metadata": meta, "spec": spec}
    # The VM's controller is to see how the VMI ended before it goes.
    meta["finalizers"] = [*finalizers(made), names.VM_FINALIZER]
    made["status"] = {"virtualMachineRevisionName": revision}
    return made


def _leave_out_dump(spec: dict[str, Any], vm: Object) -> None:
    """Forget the volume of a memory dump that is done, lest the dump be made again."""
    request = at(vm, "status", "memoryDumpRequest")
    if request is not None and request.get("phase", "") not in _UNFINISHED_DUMP:
        claim = request.get("claimName")
        spec["volumes"] = [one for one in spec.get("volumes") or () if one.get("name") != claim]


def _complete(spec: dict[str, Any], name: str, config: ClusterConfig) -> None:
    domain = spec.setdefault("domain", {})
    devices = domain.get("devices") or {}
    domain["devices"] = devices
    firmware = domain.get("firmware") or {}
    domain["firmware"] = firmware
    if not firmware.get("uuid"):
        firmware["uuid"] = legacy_uuid(name)
    for field in ("disks", "filesystems", "interfaces"):
        if devices.get(field, ()) is None:
            del devices[field]
    disks_for_volumes({**spec, "volumes": spec.get("volumes") or []})
    if devices.get("autoattachInputDevice") and not devices.get("inputs"):
        devices["inputs"] = [{"name": "default-0"}]
    default_network(spec, config)
