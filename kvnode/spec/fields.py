"""Read fields of a JSON document by name, with one clear error for each thing that can be wrong."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from kvnode.api.errors import FieldError
from kvnode.api.quantity import Quantity

_TYPE_NAMES = {dict: "a mapping", list: "a list", str: "a string", bool: "a boolean", type(None): "null"}


def type_name(value: object) -> str:
    """How a user would call the JSON type of `value`."""
    if isinstance(value, Mapping):
        return "a mapping"
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        return "a number"
    return _TYPE_NAMES.get(type(value), type(value).__name__)


def wrong_type(field: str, wanted: str, value: object) -> FieldError:
    """Make the error for a value of the wrong JSON type; `wanted` is a phrase such as ``a mapping``."""
    return FieldError(field, f"must be {wanted}, not {type_name(value)}")


def get_mapping(parent: Mapping[str, Any], key: str, path: str) -> Mapping[str, Any]:
    """Field `key` as a mapping; an empty one when it is absent or null. `path` ends in a dot."""
    value = parent.get(key)
    if value is None:
        return {}
    if not isinstance(value, Mapping):
        raise wrong_type(f"{path}{key}", "a mapping", value)
    return value


def get_list(parent: Mapping[str, Any], key: str, path: str) -> list[Any]:
    """Field `key` as a list; an empty one when it is absent or null."""
    value = parent.get(key)
    if value is None:
        return []
    if not isinstance(value, list):
        raise wrong_type(f"{path}{key}", "a list", value)
    return value


def get_strings(parent: Mapping[str, Any], key: str, path: str) -> list[str]:
    """Field `key` as a list of strings; an empty one when it is absent or null."""
    values = get_list(parent, key, path)
    for index, value in enumerate(values):
        if not isinstance(value, str):
            raise wrong_type(f"{path}{key}[{index}]", "a string", value)
    return values


def get_string(parent: Mapping[str, Any], key: str, path: str) -> str:
    """Field `key` as a string; ``""`` when it is absent or null."""
    value = parent.get(key)
    if value is None:
        return ""
    if not isinstance(value, str):
        raise wrong_type(f"{path}{key}", "a string", value)
    return value


def get_bool(parent: Mapping[str, Any], key: str, path: str) -> bool | None:
    """Field `key` as a boolean; None when it is absent or null."""
    value = parent.get(key)
    if value is None or isinstance(value, bool):
        return value
    raise wrong_type(f"{path}{key}", "true or false", value)


def get_int(
    parent: Mapping[str, Any], key: str, path: str, low: int = 0, high: int = 2**32 - 1
) -> int | None:
    """Field `key` as an integer from `low` to `high` (an unsigned 32-bit one); None when absent or null."""
    value = parent.get(key)
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int):
        raise wrong_type(f"{path}{key}", "a whole number", value)
    if not low <= value <= high:
        raise FieldError(f"{path}{key}", f"must be from {low} to {high}")
    return value


def get_quantity(parent: Mapping[str, Any], key: str, path: str) -> Quantity | None:
    """Field `key` as a quantity; None when it is absent or null."""
    value = parent.get(key)
    if value is None:
        return None
    try:
        return Quantity.from_json(value)
    except ValueError as error:
        raise FieldError(f"{path}{key}", str(error)) from None
