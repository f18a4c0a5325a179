"""The few facts that standalone mode needs of a domain's XML."""

from __future__ import annotations

import xml.etree.ElementTree as ET
from dataclasses import dataclass

_UNITS = {"b": 1, "bytes": 1, "KiB": 1 << 10, "k": 1 << 10, "MiB": 1 << 20, "GiB": 1 << 30, "TiB": 1 << 40}


@dataclass(frozen=True)
class DomainFacts:
    """What a domain says of itself."""

    kind: str
    """``kvm`` or ``qemu``."""

    memory: int
    """Guest memory in bytes."""

    ram_blocks: tuple[int, ...]
    """Sizes of its RAM blocks in bytes: one, or one a NUMA cell."""

    vcpus: int
    """vCPUs that are there from the start."""


def read_domain(xml: bytes) -> DomainFacts:
    """Read the facts from a domain that the converter wrote."""
    domain = ET.fromstring(xml)  # noqa: S314 - written by the converter
    memory = domain.find("memory")
    size = _bytes(memory.text, memory.get("unit", "KiB")) if memory is not None else 0
    cells = domain.findall("cpu/numa/cell")
    blocks = tuple(_bytes(cell.get("memory"), cell.get("unit", "KiB")) for cell in cells) or (size,)
    enabled = domain.findall("vcpus/vcpu[@enabled='yes']")
    total = domain.findtext("vcpu") or "1"
    return DomainFacts(domain.get("type", ""), size, blocks, len(enabled) or int(total))


def _bytes(text: str | None, unit: str) -> int:
    return int(text or 0) * _UNITS.get(unit, 1)
