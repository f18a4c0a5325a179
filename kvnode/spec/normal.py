"""Bring a VirtualMachineInstance into the form in which an API server keeps it.

A copy, in which every field that the API knows has the type that it declares, a null is absent, quantities
are in canonical form, and a false or a zero that says no more than its absence is gone (``omitempty`` on a
plain value of Go). What works on such a copy needs no type checks. Fields that the API does not know are kept
as they are: whether they are allowed is for validation to say.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping
from functools import cache
from typing import Any

from kvnode.api.errors import FieldError
from kvnode.api.quantity import Quantity
from kvnode.spec.cause import child, shown
from kvnode.spec.fields import wrong_type
from kvnode.spec.model import ENUMS, INTEGERS, TYPES, FieldType, fields

_Reader = Callable[[Any, str], Any]

MAX_DEPTH = 64
"""How deep the parts that the API does not describe may nest; its own deepest field is at a third of that."""

ABSENT_WHEN_ZERO: Mapping[str, frozenset[str]] = {
    name: frozenset(members.split())
    for name, members in {
        "CPU": "cores sockets maxSockets threads dedicatedCpuPlacement isolateEmulatorThread",
        "CPUTopology": "cores sockets threads",
        "ContainerDiskInfo": "checksum",
        "CustomBlockSize": "logical physical",
        "DataVolumeSource": "hotpluggable",
        "Devices": "disableHotplug",
        "DiskTarget": "readonly",
        "FeatureAPIC": "endOfInterrupt",
        "FeatureKVM": "hidden",
        "InitrdInfo": "checksum",
        "Interface": "acpiIndex",
        "KernelInfo": "checksum",
        "LunTarget": "readonly reservation",
        "MultusNetwork": "default",
        "ObjectMeta": "generation",
        "PersistentVolumeClaimInfo": "preallocated",
        "PersistentVolumeClaimVolumeSource": "hotpluggable readOnly",
        "Probe": "initialDelaySeconds timeoutSeconds periodSeconds successThreshold failureThreshold",
        "ResourceRequirements": "overcommitGuestOverhead",
        "VirtualMachineInstanceBackupStatus": "completed failed",
        "VirtualMachineInstanceMigrationState": "targetNodeDomainDetected completed failed abortRequested",
        "VirtualMachineInstanceMigrationTargetState": "domainDetected",
        "VirtualMachineInstanceNetworkInterface": "queueCount",
        "VolumeStatus": "size",
    }.items()
}
"""Type -> plain fields with ``omitempty`` (``staging/src/kubevirt.io/api/core/v1/{types,schema}.go``)."""

PRESENT_WHEN_ZERO: Mapping[str, Mapping[str, Any]] = {
    "DHCPPrivateOptions": {"option": 0},
    "EmptyDiskSource": {"capacity": "0"},
    "HostDisk": {"capacity": "0"},
    "Port": {"port": 0},
    "PortRange": {"start": 0, "end": 0},
}
"""Type -> plain fields that an API server writes even when nobody set them."""


def normal_instance(vmi: object) -> dict[str, Any]:
    """Make the normal copy of a VirtualMachineInstance; `vmi` itself is left alone.

    ``metadata``, ``spec``, ``spec.domain`` and ``spec.domain.devices`` are there in the copy, if empty.

    Raises:
        FieldError: a field has another type than the API declares, or a number is out of its range.
    """
    if not isinstance(vmi, Mapping):
        raise wrong_type("", "a mapping (a VirtualMachineInstance)", vmi)
    made: dict[str, Any] = _reader_of_type("VirtualMachineInstance")(vmi, "")
    made.setdefault("metadata", {})
    domain = made.setdefault("spec", {}).setdefault("domain", {})
    domain.setdefault("devices", {})
    return made


def check_types(kind: str, obj: object) -> None:
    """See that every field of an object that the API knows has the type that it declares; null is absent.

    `kind` is an entry of the model, such as ``VirtualMachine``.

    Raises:
        FieldError: one has not; the first that is found.
    """
    _reader_of_type(kind)(obj, "")


@cache
def _reader_of_type(name: str) -> _Reader:
    """The reader of one type of the model."""
    members = fields(name)
    droppable = ABSENT_WHEN_ZERO.get(name, frozenset())
    present = PRESENT_WHEN_ZERO.get(name, {})
    readers: dict[str, _Reader] = {}

    def read(value: Any, path: str) -> dict[str, Any]:
        if not isinstance(value, Mapping):
            raise wrong_type(path, "a mapping", value)
        made = dict(present)
        prefix = f"{path}." if path else ""
        for key, item in value.items():
            if item is None:
                continue
            reader = readers.get(key)
            if reader is None:
                if key not in members:
                    made[key] = _unknown(item, child(path, key))
                    continue
                reader = readers[key] = _reader(members[key])
            got = reader(item, prefix + key)
            if not got and key in droppable and not isinstance(got, (str, dict, list)):
                continue
            made[key] = got
        return made

    return read


@cache
def _reader(kind: FieldType) -> _Reader:
    """The reader of a field: its containers, then what is in them."""
    if kind.containers:
        return (_list_of if kind.containers[0] == "[]" else _map_of)(_reader(kind.element()))
    if kind.name in TYPES:
        return _reader_of_type(kind.name)
    if kind.name in INTEGERS:
        return _integer(*INTEGERS[kind.name])
    if kind.name in ENUMS:
        return _string
    return _SCALAR_READERS[kind.name]


def _list_of(read_item: _Reader) -> _Reader:
    def read(value: Any, path: str) -> list[Any]:
        if not isinstance(value, list):
            raise wrong_type(path, "a list", value)
        return [read_item(item, f"{path}[{index}]") for index, item in enumerate(value)]

    return read


def _map_of(read_item: _Reader) -> _Reader:
    def read(value: Any, path: str) -> dict[str, Any]:
        if not isinstance(value, Mapping):
            raise wrong_type(path, "a mapping", value)
        made = {}
        for key, item in value.items():
            if not isinstance(key, str):
                raise FieldError(
                    path, f"the names of its entries must be strings, {shown(key)} is not: quote it"
                )
            made[key] = read_item(item, child(path, key))
        return made

    return read


def _integer(low: int, high: int) -> _Reader:
    def read(value: Any, path: str) -> int:
        if isinstance(value, bool) or not isinstance(value, int):
            raise wrong_type(path, "a whole number", value)
        if not low <= value <= high:
            raise FieldError(path, f"must be a whole number from {low} to {high}")
        return value

    return read


def _string(value: Any, path: str) -> str:
    if not isinstance(value, str):
        raise wrong_type(path, "a string", value)
    return value


def _boolean(value: Any, path: str) -> bool:
    if not isinstance(value, bool):
        raise wrong_type(path, "true or false", value)
    return value


def _number(value: Any, path: str) -> int | float:
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise wrong_type(path, "a number", value)
    return value


def _quantity(value: Any, path: str) -> str:
    try:
        return str(Quantity.from_json(value))
    except ValueError as error:
        raise FieldError(path, str(error)) from None


def _int_or_string(value: Any, path: str) -> int | str:
    if isinstance(value, bool) or not isinstance(value, (int, str)):
        raise wrong_type(path, "an integer or a string", value)
    return value


def _unknown(value: Any, path: str) -> Any:
    _check_depth(value, path)
    return copy.deepcopy(value)


def _check_depth(value: Any, path: str) -> None:
    """Refuse what copying would exhaust the stack with; level by level, without recursion."""
    level = [value]
    for _ in range(MAX_DEPTH):
        below = [
            item
            for parent in level
            if isinstance(parent, (Mapping, list))
            for item in (parent.values() if isinstance(parent, Mapping) else parent)
        ]
        # By identity: what a YAML alias repeats is looked at once a level.
        level = list({id(item): item for item in below}.values())
        if not level:
            return
    raise FieldError(path, f"is nested deeper than {MAX_DEPTH} levels")


_SCALAR_READERS: Mapping[str, _Reader] = {
    "any": _unknown,
    "bool": _boolean,
    "intOrString": _int_or_string,
    "number": _number,
    "quantity": _quantity,
    "string": _string,
    "time": _string,
}
