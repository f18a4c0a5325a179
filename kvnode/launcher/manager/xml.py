"""Small reads of a domain's XML."""

from __future__ import annotations

import xml.etree.ElementTree as ET

#: Before a device's name in its alias (``pkg/virt-launcher/virtwrap/api/schema.go``).
USER_ALIAS = "ua-"


def parse(xml: str | bytes) -> ET.Element:
    """The root of libvirt's or the converter's own XML."""
    return ET.fromstring(xml)  # noqa: S314 - no user wrote it


def text(element: ET.Element) -> str:
    """XML of an element."""
    return ET.tostring(element, encoding="unicode")


def name_of(device: ET.Element) -> str:
    """The name that the VMI gives a device: its alias without the mark of a user's; "" without one."""
    alias = device.find("alias")
    return "" if alias is None else alias.get("name", "").removeprefix(USER_ALIAS)


def target_of(device: ET.Element) -> str:
    """``<target dev>`` of a disk or an interface; "" without one."""
    target = device.find("target")
    return "" if target is None else target.get("dev", "")


def replace_child(parent: ET.Element, tag: str, attributes: dict[str, str]) -> None:
    """Give ``parent`` a single child ``tag`` with these attributes, where its like was or at the end."""
    old = parent.findall(tag)
    made = ET.Element(tag, attributes)
    if old:
        parent.insert(list(parent).index(old[0]), made)
    else:
        parent.append(made)
    for child in old:
        parent.remove(child)
