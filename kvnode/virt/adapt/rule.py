"""What a rule is, and the few helpers that rules share."""

from __future__ import annotations

import xml.etree.ElementTree as ET
from collections.abc import Callable, Iterator
from dataclasses import dataclass

#: Prefixes of the namespaces in a domain.
NAMESPACES = {
    "kubevirt": "http://kubevirt.io",
    "qemu": "http://libvirt.org/schemas/domain/qemu/1.0",
}


@dataclass(frozen=True)
class Rule:
    """One quirk."""

    name: str
    why: str
    apply: Callable[[ET.Element], bool]
    """Changes the domain in place; True when it changed something."""

    until: int | None = None
    """First libvirt version that does not need it; None: all do."""

    note: str = ""
    """What a user should know when it was applied; empty when nothing that a guest could see has changed."""

    def covers(self, libvirt_version: int) -> bool:
        """Tell whether the rule is for that version."""
        return self.until is None or libvirt_version < self.until


def is_bare(element: ET.Element) -> bool:
    """Tell whether an element has no attribute, child or text."""
    return not element.attrib and len(element) == 0 and not (element.text or "").strip()


def remove_all(parent: ET.Element, doomed: list[ET.Element]) -> bool:
    """Remove those children; True when there were any."""
    for child in doomed:
        parent.remove(child)
    return bool(doomed)


def with_parents(root: ET.Element) -> Iterator[tuple[ET.Element, ET.Element]]:
    """Yield every element below ``root`` with its parent; the tree may be changed meanwhile."""
    pairs = [(parent, child) for parent in root.iter() for child in parent]
    yield from pairs
