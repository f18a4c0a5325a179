"""Reads a structure from XML, by the rules of Go's encoding/xml.

Attributes and elements are found by their local names; what no field asks for is passed over. An element
that comes again is read into the value that is already there, or added to the list.
"""

from __future__ import annotations

from typing import Any
from xml.etree.ElementTree import Element, ParseError, fromstring

from kvnode.virt.domain_json.errors import DomainFormatError
from kvnode.virt.domain_json.scalars import Scalar
from kvnode.virt.domain_json.shape import Field, Struct


def read_xml(struct: Struct, xml: str | bytes, root: str) -> dict[str, Any]:
    """Read ``struct`` from a document whose root element is ``root``.

    Raises:
        DomainFormatError: the document is no XML, its root is another, or a value is not what its field
        takes.
    """
    try:
        element = fromstring(xml)  # noqa: S314  (libvirt's own output; expat limits the growth of entities)
    except ParseError as error:
        raise DomainFormatError(root, f"is not well-formed XML: {error}") from None
    except (ValueError, UnicodeError) as error:
        raise DomainFormatError(root, f"is not text: {error}") from None
    _, local = _split(element.tag)
    if local != root:
        raise DomainFormatError(local, f"is where <{root}> must be")
    value = struct.zero()
    try:
        _fill(struct, element, value)
    except DomainFormatError as error:
        raise error.within(root) from None
    return value


def _fill(struct: Struct, element: Element, value: dict[str, Any]) -> None:
    if struct.attributes:
        for name, content in element.items():
            field = struct.attributes.get(name) or struct.attributes.get(_local(name))
            if field is not None:
                value[field.name] = _scalar(field.kind, content, f"@{name}")
    if struct.own_name is not None:
        space, local = _split(element.tag)
        value[struct.own_name.name] = {"Space": space, "Local": local}
    if struct.text is not None:
        value[struct.text.name] = _scalar(struct.text.kind, _own_text(element), "")
    for child in element:
        _child(struct, child, value)
    if struct.after_xml is not None:
        struct.after_xml(value)


def _child(struct: Struct, child: Element, value: dict[str, Any]) -> None:
    local = _local(child.tag)
    field = struct.elements.get(local) or struct.elements.get(child.tag)
    try:
        if field is not None:
            _take(field, child, value)
        elif local in struct.wrapped:
            for inner in child:
                wrapped = struct.wrapped[local].get(_local(inner.tag))
                if wrapped is not None:
                    _take(wrapped, inner, value)
    except DomainFormatError as error:
        raise error.within(local) from None


def _take(field: Field, element: Element, value: dict[str, Any]) -> None:
    kind = field.kind
    if isinstance(kind, Scalar):
        content = _scalar(kind, _own_text(element), "")
        if field.form == "many":
            value[field.name] = [*(value[field.name] or []), content]
        else:
            value[field.name] = content
        return
    if field.form == "many":
        if value[field.name] is None:
            value[field.name] = []
        value[field.name].append(inner := kind.zero())
    else:
        if value[field.name] is None:
            value[field.name] = kind.zero()
        inner = value[field.name]
    _fill(kind, element, inner)


def _scalar(kind: Struct | Scalar, text: str, path: str) -> Any:
    if isinstance(kind, Struct):
        raise TypeError(f"{path} is text, and a structure is to be read from it")
    try:
        return kind.from_text(text)
    except ValueError as error:
        raise DomainFormatError(path, f"{error}, is {text[:40]!r}") from None


def _own_text(element: Element) -> str:
    """The text of an element without that of its children."""
    if len(element) == 0:
        return element.text or ""
    return "".join([element.text or "", *(child.tail or "" for child in element)])


def _local(tag: str) -> str:
    return tag.rpartition("}")[2] if tag[:1] == "{" else tag


def _split(tag: str) -> tuple[str, str]:
    """Namespace and local name of a tag in ElementTree's notation."""
    return (tag[1:].rpartition("}")[0], _local(tag)) if tag[:1] == "{" else ("", tag)
