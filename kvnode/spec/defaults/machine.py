"""Defaulting of a VirtualMachine: what its template gets before any VMI is made of it.

(``pkg/virt-api/webhooks/mutating-webhook/mutators/vm-mutator.go``, ``pkg/defaults/defaults.go:40-62``)
"""

from __future__ import annotations

import uuid
from collections.abc import Mapping
from typing import Any

from kvnode.api import names
from kvnode.api.errors import FieldError
from kvnode.spec.config import ClusterConfig
from kvnode.spec.defaults.instance import DefaultingError, has_pcie_hotplug
from kvnode.spec.fields import get_string, wrong_type

_TEMPLATE = "spec.template."


def apply_machine_defaults(
    vm: Mapping[str, Any],
    architecture: str,
    config: ClusterConfig | Mapping[str, Any] | None = None,
    *,
    creating: bool = True,
) -> dict[str, Any]:
    """Return a copy of `vm` whose template names what must not change from one start to the next.

    That is its architecture and machine type and, for a VM that is being created, its firmware's UUID and serial
    number and the version of its PCI topology. All else is defaulted when a VMI is made. What is not changed
    is not copied: the copy shares it with `vm`.

    Args:
        vm: a VirtualMachine; it is not changed.
        architecture: that of a template which names none: ``amd64``, ``arm64`` or ``s390x``.
        config: the cluster's settings, or ``spec.configuration`` of the KubeVirt object; None: none set.
        creating: whether the VM is new. The identity of one that is there already is its controller's to set.

    Raises:
        DefaultingError: a field on the way has the wrong type, or there is no template.
    """
    try:
        return _defaulted(vm, architecture, ClusterConfig.of(config), creating)
    except FieldError as error:
        raise DefaultingError(error.field, error.message) from None


def _defaulted(vm: Mapping[str, Any], architecture: str, config: ClusterConfig, new: bool) -> dict[str, Any]:
    if not isinstance(vm, Mapping):
        raise wrong_type("", "a mapping (a VirtualMachine)", vm)
    made = dict(vm)
    spec = _copied(made, "spec", "")
    if spec.get("template") is None:
        raise FieldError("spec.template", "is required: give the VM's template")
    template = _copied(spec, "template", "spec.")
    instance = _copied(template, "spec", _TEMPLATE)
    domain = _copied(instance, "domain", f"{_TEMPLATE}spec.")
    if not get_string(instance, "architecture", f"{_TEMPLATE}spec."):
        instance["architecture"] = architecture or config.default_architecture
    machine = _copied(domain, "machine", f"{_TEMPLATE}spec.domain.")
    if not get_string(machine, "type", f"{_TEMPLATE}spec.domain.machine."):
        machine["type"] = config.machine_type(instance["architecture"])
    if new:
        _identify(domain)
        if has_pcie_hotplug(instance):
            metadata = _copied(template, "metadata", _TEMPLATE)
            annotations = _copied(metadata, "annotations", f"{_TEMPLATE}metadata.")
            annotations.setdefault(names.PCI_TOPOLOGY_VERSION_ANNOTATION, names.PCI_TOPOLOGY_VERSION_V3)
    return made


def _identify(domain: dict[str, Any]) -> None:
    """A random UUID and serial number, which the guest then finds on every start (``vm-mutator.go``)."""
    path = f"{_TEMPLATE}spec.domain."
    firmware = _copied(domain, "firmware", path)
    for name in ("uuid", "serial"):
        if not get_string(firmware, name, f"{path}firmware."):
            firmware[name] = str(uuid.uuid4())


def _copied(parent: dict[str, Any], name: str, prefix: str) -> dict[str, Any]:
    """Put a copy of a mapping in its place, an empty one where there is none, and return it."""
    value = parent.get(name)
    if value is not None and not isinstance(value, Mapping):
        raise wrong_type(f"{prefix}{name}", "a mapping", value)
    copied = parent[name] = dict(value or {})
    return copied
