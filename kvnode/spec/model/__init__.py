"""The fields of the VirtualMachineInstance and VirtualMachine API, as data.

One entry a type of `kubevirt.io/v1` (and of what it embeds), one line a field: see `notation` for how a type
is written. Validation checks manifests against it, and tests walk it to see that no field is forgotten.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cache

from kvnode.spec.model.cdi import CDI
from kvnode.spec.model.devices import DEVICES
from kvnode.spec.model.domain import DOMAIN
from kvnode.spec.model.instance import INSTANCE
from kvnode.spec.model.kubernetes import ENUMS, KUBERNETES
from kvnode.spec.model.machine import MACHINE
from kvnode.spec.model.notation import INTEGERS, SCALARS, FieldType, Types
from kvnode.spec.model.status import STATUS
from kvnode.spec.model.volumes import VOLUMES

__all__ = ["ENUMS", "INTEGERS", "SCALARS", "TYPES", "FieldType", "Types", "fields", "walk"]

TYPES: Types = {**INSTANCE, **DOMAIN, **DEVICES, **VOLUMES, **STATUS, **MACHINE, **KUBERNETES, **CDI}


@cache
def fields(type_name: str) -> Mapping[str, FieldType]:
    """The fields of one type of the model, by their JSON name.

    Raises:
        KeyError: there is no such type.
    """
    return {name: FieldType.parse(notation) for name, notation in TYPES[type_name].items()}


def walk(type_name: str, path: str = "") -> Iterator[tuple[str, FieldType]]:
    """Every field below a type with its path, depth first: ``spec.domain.devices.disks[].name``.

    ``[]`` stands for a list's index and ``{}`` for a map's key.
    """
    for name, field in fields(type_name).items():
        below = f"{path}.{name}" if path else name
        yield below, field
        if field.name in TYPES:
            yield from walk(field.name, below + "".join(field.containers))
