"""The memory report of a VM of this machine."""

from __future__ import annotations

from kvnode.api.errors import FieldError
from kvnode.memory.measure import Guest, measure
from kvnode.memory.report import MemoryReport
from kvnode.spec.overhead import memory_overhead_terms
from kvnode.standalone import records
from kvnode.standalone.errors import StandaloneError
from kvnode.standalone.state import VmDirectory


def measure_vm(vm: VmDirectory, first_process: int) -> MemoryReport:
    """Measure a running VM against the overhead of its VMI; raises StandaloneError when its files are
    damaged.
    """
    record = records.read_json(vm.path / "record.json")
    vmi = records.read_json(vm.path / "vmi.json")
    if record is None or vmi is None:
        raise StandaloneError(f"{vm.title}: record.json or vmi.json cannot be read")
    ram = record.get("ramBlocks")
    guest = Guest(
        vm.namespace,
        vm.name,
        str(record.get("domainType", "")),
        tuple(size for size in ram if isinstance(size, int)) if isinstance(ram, list) else (),
    )
    try:
        terms = memory_overhead_terms(vmi, str(record.get("architecture", "")))
    except (FieldError, TypeError, KeyError, AttributeError):
        raise StandaloneError(f"{vm.title}: vmi.json is damaged") from None
    return measure(first_process, guest, terms)
