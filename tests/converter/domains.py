"""When two domains are the same to libvirt, and what differs when they are not."""

from __future__ import annotations

import xml.etree.ElementTree as ET
from collections.abc import Iterator

# Elements that KubeVirt marshals even when they hold nothing.
_NOTHING_WHEN_BARE = {"bios", "baseBoard", "chassis", "uid", "source", "backingStore"}
_UNITS = {
    "b": 1,
    "bytes": 1,
    "KiB": 2**10,
    "MiB": 2**20,
    "GiB": 2**30,
    "TiB": 2**40,
    "KB": 10**3,
    "MB": 10**6,
}
_SIZES = {"memory", "currentMemory", "maxMemory", "size", "requested", "block"}


def differences(expected: str | bytes, got: str | bytes) -> list[str]:
    """A line for each difference that counts; none when the domains are the same.

    Order counts among siblings of one name only, white space between elements does not, an empty attribute is as
    good as none, and sizes are compared in bytes.
    """
    return list(_compare(ET.fromstring(expected), ET.fromstring(got), ""))


def _compare(expected: ET.Element, got: ET.Element, path: str) -> Iterator[str]:
    path = f"{path}/{_name(expected)}"
    left, right = _attributes(expected), _attributes(got)
    for key in sorted(left.keys() | right.keys()):
        if left.get(key) != right.get(key):
            yield f"{path}@{key}: expected {left.get(key)!r}, got {right.get(key)!r}"
    if _text(expected) != _text(got):
        yield f"{path}: expected {_text(expected)!r}, got {_text(got)!r}"
    ours, theirs = _children(expected), _children(got)
    for name in sorted(ours.keys() | theirs.keys()):
        one, other = ours.get(name, []), theirs.get(name, [])
        if len(one) != len(other):
            yield f"{path}/{name}: expected {len(one)} of them, got {len(other)}"
        for a, b in zip(one, other, strict=False):
            yield from _compare(a, b, path)


def _name(element: ET.Element) -> str:
    return element.tag.removeprefix("{http://kubevirt.io}")


def _is_size(element: ET.Element) -> bool:
    return _name(element) in _SIZES and (element.text or "").strip().isdigit()


def _attributes(element: ET.Element) -> dict[str, str]:
    found = {key: value for key, value in element.attrib.items() if value}
    if _is_size(element):
        found.pop("unit", None)
    elif element.tag == "cell" and "memory" in found:
        found["memory"] = str(int(found["memory"]) * _UNITS[found.pop("unit", "KiB")])
    return found


def _text(element: ET.Element) -> str:
    text = (element.text or "") if len(element) == 0 else ""
    if _is_size(element):
        return str(int(text) * _UNITS[element.get("unit", "KiB")])
    return text if text.strip() else ""


def _children(element: ET.Element) -> dict[str, list[ET.Element]]:
    found: dict[str, list[ET.Element]] = {}
    for child in element:
        bare = not _attributes(child) and not _text(child) and not _children(child)
        if not (bare and _name(child) in _NOTHING_WHEN_BARE):
            found.setdefault(_name(child), []).append(child)
    return found
