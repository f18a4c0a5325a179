"""``<cpu>``, ``<vcpu>``, ``<vcpus>``, ``<cputune>``, ``<numatune>`` and ``<iothreads>``."""

from __future__ import annotations

from kvnode.virt.domain_json.scalars import UINT32, UINT64
from kvnode.virt.domain_json.shape import many, one, optional, struct, text

CPU_FEATURE = struct(
    text("Name", "@name"),
    text("Policy", "@policy"),
)
CPU_TOPOLOGY = struct(
    one("Sockets", "@sockets", UINT32),
    one("Cores", "@cores", UINT32),
    one("Threads", "@threads", UINT32),
)
NUMA_CELL_SIBLING = struct(
    text("ID", "@id"),
    one("Value", "@value", UINT64),
)
NUMA_CELL_DISTANCES = struct(
    many("Siblings", "sibling", NUMA_CELL_SIBLING),
)
NUMA_CELL = struct(
    text("ID", "@id"),
    text("CPUs", "@cpus"),
    optional("Memory", "@memory", UINT64),
    text("Unit", "@unit"),
    text("MemoryAccess", "@memAccess"),
    optional("Distances", "distances", NUMA_CELL_DISTANCES),
)
NUMA = struct(
    many("Cells", "cell", NUMA_CELL),
)
CPU = struct(
    text("Mode", "@mode"),
    text("Model", "model"),
    many("Features", "feature", CPU_FEATURE),
    optional("Topology", "topology", CPU_TOPOLOGY),
    optional("NUMA", "numa", NUMA),
)
VCPU = struct(
    text("Placement", "@placement"),
    one("CPUs", ".", UINT32),
)
VCPUS_VCPU = struct(
    one("ID", "@id", UINT32),
    text("Enabled", "@enabled"),
    text("Hotpluggable", "@hotpluggable"),
    one("Order", "@order", UINT32),
)
VCPUS = struct(
    many("VCPU", "vcpu", VCPUS_VCPU),
)
CPU_TUNE_VCPU_PIN = struct(
    one("VCPU", "@vcpu", UINT32),
    text("CPUSet", "@cpuset"),
)
CPU_TUNE_IO_THREAD_PIN = struct(
    one("IOThread", "@iothread", UINT32),
    text("CPUSet", "@cpuset"),
)
CPU_EMULATOR_PIN = struct(
    text("CPUSet", "@cpuset"),
)
CPU_TUNE = struct(
    many("VCPUPin", "vcpupin", CPU_TUNE_VCPU_PIN),
    many("IOThreadPin", "iothreadpin", CPU_TUNE_IO_THREAD_PIN),
    optional("EmulatorPin", "emulatorpin", CPU_EMULATOR_PIN),
)
NUMA_TUNE_MEMORY = struct(
    text("Mode", "@mode"),
    text("NodeSet", "@nodeset"),
)
MEM_NODE = struct(
    one("CellID", "@cellid", UINT32),
    text("Mode", "@mode"),
    text("NodeSet", "@nodeset"),
)
NUMA_TUNE = struct(
    one("Memory", "memory", NUMA_TUNE_MEMORY),
    many("MemNodes", "memnode", MEM_NODE),
)
IOTHREADS = struct(
    one("IOThreads", ".", UINT64),
)
