"""Where the memory of this VM goes: every process of the pod, beside what was requested for it."""

from __future__ import annotations

import xml.etree.ElementTree as ET
from typing import Any

from kvnode.launcher.manager.errors import ManagerError
from kvnode.launcher.manager.host import Host
from kvnode.launcher.manager.instance import Instance
from kvnode.launcher.manager.ports import bytes_of
from kvnode.launcher.manager.xml import parse


async def memory_report(host: Host, vmi: Instance | None, architecture: str) -> dict[str, Any]:
    """``MemoryReport.as_dict()`` of this pod; ``vmi`` is the one that was synced last.

    Raises:
        ManagerError: there is no domain yet.
    """
    if vmi is None:
        raise ManagerError("there is no domain yet whose memory could be measured")
    return await host.call(_measure, host, vmi, architecture)


def _measure(host: Host, vmi: Instance, architecture: str) -> dict[str, Any]:
    # Loaded when somebody asks: most launchers are never asked.
    from kvnode.memory.measure import Guest, measure  # noqa: PLC0415
    from kvnode.spec.overhead import memory_overhead_terms  # noqa: PLC0415

    live = parse(host.domain().XMLDesc(0))
    guest = Guest(vmi.namespace, vmi.name, live.get("type", ""), ram_blocks(live))
    terms = memory_overhead_terms(dict(vmi.data), architecture)
    return measure(1, guest, terms).as_dict()


def ram_blocks(domain: ET.Element) -> tuple[int, ...]:
    """Sizes in bytes of the guest's RAM blocks: one, or one a NUMA cell; and what was plugged in."""
    cells = domain.findall("cpu/numa/cell")
    blocks = [bytes_of(cell.get("memory"), cell.get("unit")) for cell in cells]
    plugged = [
        bytes_of(size.text, size.get("unit")) for size in domain.iterfind("devices/memory/target/size")
    ]
    if not blocks:
        memory = domain.find("memory")
        total = 0 if memory is None else bytes_of(memory.text, memory.get("unit"))
        blocks = [total - sum(plugged)]
    return tuple(size for size in (*blocks, *plugged) if size > 0)
