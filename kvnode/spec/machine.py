"""From a VirtualMachine to the instance that it runs (``pkg/virt-controller/watch/vm/vm.go:1868``)."""

from __future__ import annotations

import copy
from collections.abc import Mapping
from typing import Any

from kvnode.api.errors import FieldError

__all__ = ["API_VERSION", "INSTANCE", "MACHINE", "TEMPLATE", "instance_of"]

API_VERSION = "kubevirt.io/v1"
INSTANCE, MACHINE = "VirtualMachineInstance", "VirtualMachine"
TEMPLATE = "spec.template"
"""Where in a VirtualMachine the instance is."""

_NAMES = ("name", "namespace", "generateName")


def instance_of(machine: Mapping[str, Any]) -> dict[str, Any]:
    """Return the VirtualMachineInstance of a VirtualMachine's template; nothing in it is shared with the machine.

    Labels, annotations and spec are the template's. Its name and namespace are the machine's: what the template
    says of them does not count. A machine that has no name yet hands on its ``generateName``.

    Raises FieldError, with the field's path in the machine, where there is no object.
    """
    spec = _object(machine.get("spec") or {}, "spec")
    template = _object(spec.get("template"), TEMPLATE, ": the instance to run")
    inner = _object(template.get("spec"), f"{TEMPLATE}.spec")
    metadata = _object(template.get("metadata") or {}, f"{TEMPLATE}.metadata")
    own = _object(machine.get("metadata") or {}, "metadata")
    names = {key: own[key] for key in _NAMES if own.get(key) is not None}
    if names.get("name"):
        names.pop("generateName", None)
    kept = {key: value for key, value in metadata.items() if key not in _NAMES}
    return {
        "apiVersion": API_VERSION,
        "kind": INSTANCE,
        "metadata": copy.deepcopy({**names, **kept}),
        "spec": copy.deepcopy(dict(inner)),
    }


def _object(value: object, field: str, what: str = "") -> Mapping[str, Any]:
    if not isinstance(value, Mapping):
        raise FieldError(field, f"must be an object{what}")
    return value
