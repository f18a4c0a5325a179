"""Types and names of fields, checked against the API's model before any rule runs.

A cluster does the same in two places: the schema of the custom resource, and `pkg/util/openapi/openapi.go`
for what that schema lets through (unknown fields of the spec). `null` means not set, as in the API server.
"""

from __future__ import annotations

import difflib
import math
import re
from collections.abc import Mapping
from datetime import datetime
from typing import Any

from kvnode.api.quantity import Quantity
from kvnode.spec import model
from kvnode.spec.cause import INVALID, NOT_SUPPORTED, REQUIRED, TYPE_INVALID, Cause, child, shown

_TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?(Z|[+-]\d\d:\d\d)")
_MOST_HINTS = 20  # near names are dear to find, and many unknown fields are no slip of the hand
_MAX_ITEMS = 256  # of the lists below, core/v1/types.go:135,159,177,200 and schema.go:539,544
_BOUNDED = frozenset(
    {
        "spec.volumes",
        "spec.networks",
        "spec.accessCredentials",
        "spec.utilityVolumes",
        "spec.domain.devices.disks",
        "spec.domain.devices.interfaces",
    }
)


class SchemaReader:
    """Copies a document by the model: what is copied has the right types, all else becomes a cause.

    Attributes:
        causes: wrong types, unknown fields, missing fields.
        ignored: unknown fields under metadata and status, which a cluster drops without a word.
    """

    def __init__(self) -> None:
        self.causes: list[Cause] = []
        self.ignored: list[Cause] = []
        self._hints = 0

    def read(self, document: Mapping[str, Any], type_name: str) -> dict[str, Any]:
        """Copy a whole document of one of the model's types."""
        return self._object(document, type_name, "")

    def _object(self, value: Mapping[str, Any], type_name: str, path: str) -> dict[str, Any]:
        known = model.fields(type_name)
        result: dict[str, Any] = {}
        for key, item in value.items():
            field = known.get(key) if isinstance(key, str) else None
            if field is None:
                self._unknown(key, known, path)
            elif item is not None:
                copied = self._value(item, field, child(path, key))
                if copied is not None:
                    result[key] = copied
        for name, field in known.items():
            if field.required and value.get(name) is None:
                below = child(path, name)
                self.causes.append(Cause(below, REQUIRED, f"is required: give {_expected(field)}"))
        return result

    def _unknown(self, key: object, known: Mapping[str, Any], path: str) -> None:
        close: list[str] = []
        if isinstance(key, str) and self._hints < _MOST_HINTS:
            self._hints += 1
            close = difflib.get_close_matches(key[:64], known, n=1)
        hint = f"did you mean {close[0]}?" if close else "remove it"
        cause = Cause(child(path, key), NOT_SUPPORTED, f"is no field of this API: {hint}")
        (self.ignored if path.split(".", 1)[0] in {"metadata", "status"} else self.causes).append(cause)

    def _value(self, value: object, field: model.FieldType, path: str) -> Any:
        """A copy of one value, or None when it is wrong (and has its cause)."""
        if field.containers:
            return self._container(value, field, path)
        if field.name in model.TYPES:
            if isinstance(value, Mapping):
                return self._object(value, field.name, path)
            return self._wrong(value, field, path)
        return self._scalar(value, field, path)

    def _container(self, value: object, field: model.FieldType, path: str) -> Any:
        element = field.element()
        if field.containers[0] == "[]":
            if not isinstance(value, (list, tuple)):
                return self._wrong(value, field, path)
            if len(value) > _MAX_ITEMS and path in _BOUNDED:
                message = f"has {len(value)} entries: at most {_MAX_ITEMS} are allowed"
                self.causes.append(Cause(path, INVALID, message))
            # A wrong entry leaves None behind: no rule sees it, as a document with causes stops here.
            return [self._value(item, element, f"{path}[{index}]") for index, item in enumerate(value)]
        if not isinstance(value, Mapping):
            return self._wrong(value, field, path)
        result: dict[str, Any] = {}
        for key, item in value.items():
            if not isinstance(key, str):
                self.causes.append(Cause(child(path, key), TYPE_INVALID, "must have a string as its key"))
            elif item is not None:
                result[key] = self._value(item, element, child(path, key))
        return result

    def _scalar(self, value: object, field: model.FieldType, path: str) -> Any:
        if field.name in model.ENUMS:
            allowed = model.ENUMS[field.name]
            if isinstance(value, str) and value and value not in allowed:
                message = f"is {shown(value)}: use one of {', '.join(allowed)}"
                self.causes.append(Cause(path, NOT_SUPPORTED, message))
                return None
            return value if isinstance(value, str) else self._wrong(value, field, path)
        if field.name == "quantity":
            return self._quantity(value, path)
        return value if _fits(value, field.name) else self._wrong(value, field, path)

    def _quantity(self, value: object, path: str) -> Quantity | None:
        try:
            return Quantity.from_json(value)
        except ValueError as error:
            self.causes.append(Cause(path, TYPE_INVALID, str(error)))
            return None

    def _wrong(self, value: object, field: model.FieldType, path: str) -> None:
        self.causes.append(Cause(path, TYPE_INVALID, f"must be {_expected(field)}, not {shown(value)}"))


def _fits(value: object, scalar: str) -> bool:
    """Whether a value is of a scalar type; enumerations and quantities are dealt with elsewhere."""
    if scalar in model.INTEGERS:
        low, high = model.INTEGERS[scalar]
        return isinstance(value, int) and not isinstance(value, bool) and low <= value <= high
    if scalar == "number":
        return isinstance(value, (int, float)) and not isinstance(value, bool) and math.isfinite(value)
    if scalar == "bool":
        return isinstance(value, bool)
    if scalar == "time":
        return isinstance(value, str) and _is_time(value)
    if scalar == "intOrString":
        return isinstance(value, str) or _fits(value, "int32")
    return scalar == "any" or isinstance(value, str)


def _is_time(text: str) -> bool:
    """Whether a text is a time as RFC 3339 writes it."""
    if len(text) > 64 or _TIME.fullmatch(text) is None:
        return False
    try:
        datetime.fromisoformat(text)
    except ValueError:
        return False
    return True


def _expected(field: model.FieldType) -> str:
    """What a field takes, in words."""
    if field.containers:
        return "a list" if field.containers[0] == "[]" else "an object"
    if field.name in model.INTEGERS:
        low, high = model.INTEGERS[field.name]
        return f"a whole number from {low} to {high}"
    if field.name in model.ENUMS:
        return f"one of {', '.join(model.ENUMS[field.name])}"
    words = {
        "string": "a string",
        "bool": "true or false",
        "number": "a number",
        "quantity": "a quantity such as 1Gi",
        "time": "a time such as 2026-01-31T12:00:00Z",
        "intOrString": "a port's number or name",
    }
    return words.get(field.name, "an object")
