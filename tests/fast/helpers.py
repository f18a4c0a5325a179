"""Convert a VMI of which a test tells only the part it is about."""

from __future__ import annotations

import xml.etree.ElementTree as ET
from collections.abc import Mapping
from typing import Any

import pytest

import kvnode

MINIMAL_VMI: dict[str, Any] = {
    "metadata": {"name": "vm", "namespace": "ns", "uid": "u-1"},
    "spec": {
        "domain": {
            "cpu": {"cores": 2, "sockets": 1, "threads": 1, "model": "host-model"},
            "devices": {},
            "machine": {"type": "q35"},
            "memory": {"guest": "64Mi"},
            "resources": {"requests": {"memory": "64Mi"}},
        }
    },
}
MINIMAL_CONTEXT: dict[str, Any] = {"architecture": "amd64", "kvmAvailable": True}


def merged(base: Mapping[str, Any], more: Mapping[str, Any]) -> dict[str, Any]:
    """`base` with `more` laid over it: objects are merged, anything else replaces."""
    out = dict(base)
    for key, value in more.items():
        old = out.get(key)
        both_objects = isinstance(value, Mapping) and isinstance(old, Mapping)
        out[key] = merged(old, value) if both_objects else value  # type: ignore[arg-type]
    return out


def domain(fragment: Mapping[str, Any] | None = None, **context: Any) -> ET.Element:
    """The domain of the minimal VMI with `fragment` laid over it; keywords: keys of the converter context."""
    vmi = merged(MINIMAL_VMI, fragment or {})
    return ET.fromstring(kvnode.convert(vmi, context=merged(MINIMAL_CONTEXT, context)))


def devices(**kinds: Any) -> dict[str, Any]:
    """The fragment of a VMI with these devices."""
    return {"spec": {"domain": {"devices": kinds}}}


def error_field(fragment: Mapping[str, Any], **context: Any) -> str:
    """The field that the conversion blames."""
    with pytest.raises(kvnode.ConversionError) as caught:
        domain(fragment, **context)
    return caught.value.field


def canonical(element: ET.Element | None) -> str:
    """An element as one line of XML, attributes sorted, for comparing whole elements."""
    assert element is not None
    return ET.canonicalize(ET.tostring(element), strip_text=True)


def xml(text: str) -> str:
    """The same for an expectation, which may be spread over lines."""
    return ET.canonicalize(text, strip_text=True)
