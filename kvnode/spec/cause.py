"""What is wrong with a manifest: one `Cause` a finding, in the shape of Kubernetes' `StatusCause`."""

from __future__ import annotations

from dataclasses import dataclass

# The values of metav1.CauseType that validation uses.
INVALID = "FieldValueInvalid"
REQUIRED = "FieldValueRequired"
DUPLICATE = "FieldValueDuplicate"
NOT_SUPPORTED = "FieldValueNotSupported"
NOT_FOUND = "FieldValueNotFound"
FORBIDDEN = "FieldValueForbidden"
TYPE_INVALID = "FieldValueTypeInvalid"

_LONGEST = 60


@dataclass(frozen=True, slots=True)
class Cause:
    """One finding about one field.

    Attributes:
        field: path of the field, such as ``spec.domain.devices.disks[0].bootOrder``; the same path that
            KubeVirt reports, also where that path is odd. Empty when the whole document is meant.
        reason: a ``metav1.CauseType``, such as ``FieldValueInvalid``.
        message: one line that says what is wrong and what would be right.
    """

    field: str
    reason: str
    message: str

    def __str__(self) -> str:
        return f"{self.field}: {self.message}" if self.field else self.message


def shown(value: object) -> str:
    """A value as it may stand in a message: short, on one line, without control characters.

    Containers are named by their kind only, so that neither size nor depth of hostile input matters.
    """
    if isinstance(value, str):
        text = ascii(value[:_LONGEST])
        return text if len(value) <= _LONGEST else f"{text}... ({len(value)} characters)"
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int):
        return str(value) if -(10**_LONGEST) < value < 10**_LONGEST else "a huge number"
    if isinstance(value, float):
        return repr(value)
    return kind(value)


def kind(value: object) -> str:
    """The JSON kind of a value, with its article: ``an object``, ``a list``, ``a string``."""
    kinds: tuple[tuple[type | tuple[type, ...], str], ...] = (
        (bool, "a boolean"),
        ((int, float), "a number"),
        (str, "a string"),
        ((list, tuple), "a list"),
        (dict, "an object"),
    )
    if value is None:
        return "null"
    return next((name for types, name in kinds if isinstance(value, types)), type(value).__name__)


def child(path: str, key: object) -> str:
    """The path of a field below another; a key that is no plain name is quoted and shortened."""
    name = (
        key if isinstance(key, str) and key.isascii() and key.isprintable() and len(key) <= _LONGEST else None
    )
    if name is None:
        return f"{path}[{shown(key)}]"
    return f"{path}.{name}" if path else name
