"""A domain as a tree whose elements, attributes and texts have paths."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from xml.parsers.expat import ParserCreate

__all__ = ["Element", "parse", "parse_siblings"]

_OPEN, _CLOSE = b"<_>", b"</_>"


@dataclass(slots=True, eq=False)
class Element:
    """One element; `path` leaves the root's name out: ``devices/disk[2]/driver``, "" for the root itself."""

    tag: str
    attributes: dict[str, str]
    text: str = ""
    children: list[Element] = field(default_factory=list)
    path: str = ""
    digest: int = 0
    """Equal for elements that are the same all the way down."""
    start: int = 0
    inner_end: int = 0
    """Where its tag begins and where its closing tag does, in the bytes that it was parsed from."""

    def part(self, name: str) -> str:
        """The path of something of this element: ``@NAME`` or ``text()``."""
        return f"{self.path}/{name}" if self.path else name

    def walk(self) -> Iterator[Element]:
        """This element and all below it, in the order of the document."""
        yield self
        for child in self.children:
            yield from child.walk()

    def parts(self) -> Iterator[tuple[str, str]]:
        """Path and value of its attributes and its text."""
        for name, value in self.attributes.items():
            yield self.part(f"@{name}"), value
        if self.text:
            yield self.part("text()"), self.text

    def child(self, tag: str) -> Element | None:
        """Its first child of this name."""
        return next((child for child in self.children if child.tag == tag), None)


def parse(xml: bytes) -> Element:
    """The tree of a domain that the converter wrote; names keep their prefixes as they stand
    (``qemu:arg``)."""
    domain = parse_siblings(xml)[0]
    _name_children(domain)
    return domain


def parse_siblings(xml: bytes) -> list[Element]:
    """The elements of a piece of a domain, without paths."""
    root = Element("", {})
    open_elements = [root]
    parser = ParserCreate()

    def start(tag: str, attributes: dict[str, str]) -> None:
        element = Element(tag, attributes, start=parser.CurrentByteIndex - len(_OPEN))
        open_elements[-1].children.append(element)
        open_elements.append(element)

    def end(_tag: str) -> None:
        element = open_elements.pop()
        element.inner_end = parser.CurrentByteIndex - len(_OPEN)
        if element.children or not element.text.strip():
            element.text = ""  # white space between elements means nothing
        content = tuple(child.digest for child in element.children)
        element.digest = hash((element.tag, tuple(element.attributes.items()), element.text, content))

    def text(data: str) -> None:
        open_elements[-1].text += data

    parser.buffer_text = True
    parser.StartElementHandler, parser.EndElementHandler, parser.CharacterDataHandler = start, end, text
    parser.Parse(_OPEN + xml + _CLOSE, True)
    return root.children[0].children


def _name_children(parent: Element) -> None:
    """Give paths; an index, counted from 1 as in XPath, where siblings share a name."""
    total: dict[str, int] = {}
    for child in parent.children:
        total[child.tag] = total.get(child.tag, 0) + 1
    seen: dict[str, int] = {}
    for child in parent.children:
        name = child.tag
        if total[name] > 1:
            seen[name] = seen.get(name, 0) + 1
            name = f"{name}[{seen[child.tag]}]"
        child.path = parent.part(name)
        _name_children(child)
