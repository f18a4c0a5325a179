"""Go structures as data: which fields, in which order, read from where in XML and under which name in JSON.

The rules are those of Go's encoding/json and encoding/xml: a field that is not there has its type's zero
value, a pointer or a list that is not there is null, and every field is written, apart from those that say
otherwise.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any, Literal

from kvnode.virt.domain_json.scalars import TEXT, Scalar

Form = Literal["one", "optional", "many"]


@dataclass(frozen=True)
class Field:
    """One field of a structure."""

    name: str
    """In JSON."""

    source: str
    """In XML: ``@attribute``, ``element``, ``outer/element``, ``{namespace}element``, ``.`` for the
    element's text, ``!`` for the element's own name, "" for nowhere."""

    kind: Struct | Scalar
    form: Form = "one"
    """``one`` is there always; ``optional`` and ``many`` are null until something is found."""

    omitempty: bool = False
    """An empty value is not written."""


class Struct:
    """A structure: its fields in order, and what readers need to find them fast."""

    def __init__(self, *fields: Field, after_xml: Callable[[dict[str, Any]], None] | None = None) -> None:
        """``after_xml`` changes a value that was just read from XML."""
        self.fields: tuple[Field, ...] = ()
        self.after_xml = after_xml
        self.by_name: dict[str, Field] = {}
        self.attributes: dict[str, Field] = {}
        self.elements: dict[str, Field] = {}
        self.wrapped: dict[str, dict[str, Field]] = {}
        self.text: Field | None = None
        self.own_name: Field | None = None
        self.inner: tuple[Field, ...] = ()
        """Those fields that hold structures."""

        self.complete = True
        """Every field is always written."""

        self._template: dict[str, Any] = {}
        self._parts: tuple[tuple[str, Struct], ...] = ()
        self.add(*fields)

    def add(self, *fields: Field) -> None:
        """Add fields at the end (for a structure that contains itself)."""
        self.fields += fields
        for field in fields:
            self.by_name[field.name] = field
            self._find(field)
            self._template[field.name] = None
            if isinstance(field.kind, Struct):
                self.inner += (field,)
                if field.form == "one":
                    self._parts += ((field.name, field.kind),)
            elif field.form == "one":
                self._template[field.name] = field.kind.zero
            self.complete = self.complete and not field.omitempty

    def _find(self, field: Field) -> None:
        """Note where in XML the field is found."""
        source = field.source
        if source.startswith("@"):
            self.attributes[source[1:]] = field
        elif source == ".":
            self.text = field
        elif source == "!":
            self.own_name = field
        elif "/" in source and not source.startswith("{"):
            outer, _, inner = source.partition("/")
            self.wrapped.setdefault(outer, {})[inner] = field
        elif source:
            self.elements[source] = field

    def zero(self) -> dict[str, Any]:
        """A new value with nothing set."""
        value = self._template.copy()
        for name, part in self._parts:
            value[name] = part.zero()
        return value

    def in_order(self, value: Mapping[str, Any]) -> bool:
        """Whether the value has all the fields, in their order, and no others."""
        return list(value) == list(self._template)

    def make(self, **values: Any) -> dict[str, Any]:
        """A new value with these fields set.

        Raises:
            TypeError: there is no such field.
        """
        made = self.zero()
        for name, value in values.items():
            if name not in made:
                raise TypeError(f"no field {name}: there are {', '.join(made)}")
            made[name] = value
        return made


def written(struct: Struct, value: Mapping[str, Any]) -> dict[str, Any]:
    """The value as it is written: in the order of the fields, empty ones left out where they say so.

    Fields that are not in ``value`` are written as zero.
    """
    out = dict(value) if struct.in_order(value) else _ordered(struct, value)
    for field in struct.inner:
        if (item := out[field.name]) is not None:
            out[field.name] = _written(field, item)
    if not struct.complete:
        for field in struct.fields:
            if field.omitempty and _empty(field, out[field.name]):
                del out[field.name]
    return out


def _ordered(struct: Struct, value: Mapping[str, Any]) -> dict[str, Any]:
    zero = struct.zero()
    return {name: value.get(name, nothing) for name, nothing in zero.items()}


def _empty(field: Field, item: Any) -> bool:
    """A pointer to something is not empty, whatever it points to; a structure never is."""
    if field.form == "optional" or (isinstance(field.kind, Struct) and field.form == "one"):
        return item is None
    return not item


def _written(field: Field, item: Any) -> Any:
    kind = field.kind
    if not isinstance(kind, Struct):
        return item
    if field.form == "many":
        return [written(kind, one) for one in item]
    return written(kind, item)


# ---- how the tables are written down


def struct(*fields: Field) -> Struct:
    """A structure."""
    return Struct(*fields)


def text(name: str, source: str = "") -> Field:
    """A string."""
    return Field(name, source, TEXT)


def one(name: str, source: str, kind: Struct | Scalar) -> Field:
    """A value that is there always."""
    return Field(name, source, kind)


def optional(name: str, source: str, kind: Struct | Scalar) -> Field:
    """A pointer."""
    return Field(name, source, kind, "optional")


def many(name: str, source: str, kind: Struct | Scalar) -> Field:
    """A list."""
    return Field(name, source, kind, "many")


_XML_NAME = struct(text("Space"), text("Local"))


def xml_name() -> Field:
    """The element's own name, which Go keeps in a field ``XMLName``."""
    return Field("XMLName", "!", _XML_NAME)


def unless_empty(field: Field) -> Field:
    """The field, not written when it is empty."""
    return replace(field, omitempty=True)


def value(name: str, kind: Struct | Scalar) -> Field:
    """A value that is in JSON alone."""
    return Field(name, "", kind)


def empties(*fields: Field) -> tuple[Field, ...]:
    """The fields, each not written when it is empty."""
    return tuple(unless_empty(field) for field in fields)
