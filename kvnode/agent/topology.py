"""The host's NUMA cells, from libvirt's capabilities (``pkg/virt-handler/options.go:113-200``)."""

from __future__ import annotations

import xml.etree.ElementTree as ET

from kvnode.agent.errors import AgentError
from kvnode.rpc.cmd_v1_pb2 import CPU, Cell, Memory, Pages, Sibling, Topology

_MAX_32, _MAX_64 = 2**32 - 1, 2**64 - 1


def read_topology(capabilities: str) -> Topology:
    """The cells that libvirt tells of. What a cell lacks (memory, distances, CPUs) it lacks here as well.

    Raises:
        AgentError: the text is no XML.
    """
    try:
        root = ET.fromstring(capabilities)  # noqa: S314  (libvirt's own output)
    except (ET.ParseError, ValueError) as error:
        raise AgentError(f"libvirt's capabilities: are not well-formed XML: {error}") from None
    cells = root.iterfind("host/topology/cells/cell")
    return Topology(numa_cells=[_cell(cell) for cell in cells])


def _cell(element: ET.Element) -> Cell:
    cell = Cell(id=_number(element.get("id"), _MAX_32))
    memory = element.find("memory")
    if memory is not None:
        cell.memory.CopyFrom(Memory(amount=_number(memory.text, _MAX_64), unit=memory.get("unit", "")))
    for page in element.iterfind("pages"):
        size = _number(page.get("size"), _MAX_32)
        cell.pages.append(Pages(count=_number(page.text, _MAX_64), unit=page.get("unit", ""), size=size))
    for sibling in element.iterfind("distances/sibling"):
        value = _number(sibling.get("value"), _MAX_64)
        cell.distances.append(Sibling(id=_number(sibling.get("id"), _MAX_32), value=value))
    for cpu in element.iterfind("cpus/cpu"):
        siblings = [_number(text, _MAX_32) for text in cpu.get("siblings", "").split(",") if _is_number(text)]
        cell.cpus.append(CPU(id=_number(cpu.get("id"), _MAX_32), siblings=siblings))
    return cell


def _is_number(text: str) -> bool:
    return text.isascii() and text.isdigit() and int(text) <= _MAX_32


def _number(text: str | None, most: int) -> int:
    """A number that is not negative; 0 for what is none."""
    text = (text or "").strip()
    return min(int(text), most) if text.isascii() and text.isdigit() and len(text) <= 20 else 0
