"""How the model writes a field's type, and the reading of it.

A type is a name: a scalar (`SCALARS`), an enumeration (`kubernetes.ENUMS`) or another entry of the model.
``[]T`` is a list of T, ``{}T`` a map from string to T, and a trailing ``!`` marks a field that must be there.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TypeAlias

Types: TypeAlias = Mapping[str, Mapping[str, str]]
"""Name of a type -> JSON name of a field -> the field's type, in the notation above."""

INTEGERS: Mapping[str, tuple[int, int]] = {
    "int8": (-(2**7), 2**7 - 1),
    "int32": (-(2**31), 2**31 - 1),
    "int64": (-(2**63), 2**63 - 1),
    "uint32": (0, 2**32 - 1),
    "uint64": (0, 2**64 - 1),
}
"""Integer types with their smallest and largest value. Go's `int` and `uint` have 64 bits."""

SCALARS = frozenset({*INTEGERS, "string", "bool", "number", "quantity", "time", "intOrString", "any"})


@dataclass(frozen=True, slots=True)
class FieldType:
    """One field's type: the containers around it (outermost first: ``[]``, ``{}``) and the name inside."""

    name: str
    containers: tuple[str, ...]
    required: bool

    @classmethod
    def parse(cls, notation: str) -> FieldType:
        """Read ``[]Disk!`` and the like."""
        name = notation.removesuffix("!")
        containers = []
        while name[:2] in {"[]", "{}"}:
            containers.append(name[:2])
            name = name[2:]
        return cls(name, tuple(containers), notation.endswith("!"))

    def element(self) -> FieldType:
        """The type of what the outermost container holds."""
        return FieldType(self.name, self.containers[1:], False)
