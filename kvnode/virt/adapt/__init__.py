"""Adapt a domain to the libvirt that is installed, and to a machine without a cluster's network.

The converter writes KubeVirt's domain and nothing else. What the installed libvirt cannot take is changed
here, right before define: one small rule a quirk, with the versions it is for. ``kvnode xml --adapted`` shows
the outcome.
"""

from __future__ import annotations

import xml.etree.ElementTree as ET
from dataclasses import dataclass

from kvnode.virt.adapt.libvirt_rules import LIBVIRT_RULES
from kvnode.virt.adapt.rule import NAMESPACES, Rule
from kvnode.virt.adapt.standalone_rules import STANDALONE_RULES
from kvnode.virt.adapt.version_rules import VERSION_RULES

__all__ = ["LIBVIRT_RULES", "STANDALONE_RULES", "VERSION_RULES", "Adapted", "Rule", "adapt"]


@dataclass(frozen=True)
class Adapted:
    """A domain as it is given to libvirt."""

    xml: str
    rules: tuple[str, ...]
    """Names of the rules that changed something, in order."""

    notes: tuple[str, ...]
    """What of it a user should know, one line each."""


def adapt(xml: str | bytes, libvirt_version: int, *, standalone: bool = False) -> Adapted:
    """Apply every rule that is for ``libvirt_version`` (major * 1,000,000 + minor * 1,000 + release).

    ``standalone`` adds the rules for a machine without a cluster. Applying it to its own output changes
    nothing. Raises ValueError when ``xml`` is not well-formed or no domain.
    """
    try:
        domain = ET.fromstring(xml)  # noqa: S314 - written by the converter, not by a user
    except ET.ParseError as error:
        raise ValueError(f"the domain is not well-formed XML: {error}") from None
    if domain.tag != "domain":
        raise ValueError(f"the root element is <{domain.tag}>, not <domain>")
    for prefix, uri in NAMESPACES.items():
        ET.register_namespace(prefix, uri)
    names: list[str] = []
    notes: list[str] = []
    for rule in (*(STANDALONE_RULES if standalone else ()), *LIBVIRT_RULES, *VERSION_RULES):
        if rule.covers(libvirt_version) and rule.apply(domain):
            names.append(rule.name)
            if rule.note:
                notes.append(rule.note)
    ET.indent(domain)
    return Adapted(ET.tostring(domain, encoding="unicode") + "\n", tuple(names), tuple(notes))
