"""Reads the VMI that a request carries, as leniently and as strictly as the reference's launcher.

Fields that the API does not know are passed over, and names count in every letter, but for ``spec``: its
own reader in the reference (``staging/src/kubevirt.io/api/core/v1/types.go:232``) is Go's plain one, which
takes a name in any case.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Any

from kvnode.api.errors import FieldError
from kvnode.spec.model import TYPES, FieldType, fields
from kvnode.spec.normal import normal_instance
from kvnode.virt.domain_json.errors import DomainFormatError
from kvnode.virt.domain_json.gojson import load

_ROOT = "VirtualMachineInstance"


def read_instance(data: bytes | str) -> dict[str, Any]:
    """Read a VirtualMachineInstance into its normal form (:func:`kvnode.spec.normal.normal_instance`).

    Raises:
        DomainFormatError: it is no JSON, or a field has another type than the API declares.
    """
    plain = load(data)
    try:
        return normal_instance({} if plain is None else _known(plain, _ROOT, any_case=False))
    except FieldError as error:
        raise DomainFormatError(error.field, error.message) from None


def _known(value: Any, kind: str, *, any_case: bool) -> Any:
    """The value without the fields that the type does not have, under the names that it gives them."""
    if not isinstance(value, Mapping):
        return value
    members = fields(kind)
    made = {}
    for key, item in value.items():
        name = key if key in members or not any_case else _folded(kind).get(key.casefold(), key)
        if name in members:
            loose = any_case or (kind == _ROOT and name == "spec")
            made[name] = _inside(item, members[name], any_case=loose)
    return made


def _inside(item: Any, kind: FieldType, *, any_case: bool) -> Any:
    if kind.containers:
        element = kind.element()
        if isinstance(item, list):
            return [_inside(part, element, any_case=any_case) for part in item]
        if isinstance(item, Mapping):
            return {key: _inside(part, element, any_case=any_case) for key, part in item.items()}
        return item
    return _known(item, kind.name, any_case=any_case) if kind.name in TYPES else item


@cache
def _folded(kind: str) -> Mapping[str, str]:
    return {name.casefold(): name for name in fields(kind)}
