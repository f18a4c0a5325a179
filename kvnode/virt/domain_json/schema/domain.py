"""``<domain>``, and the Domain that goes over the wire."""

from __future__ import annotations

from kvnode.virt.domain_json.schema.common import MEMORY
from kvnode.virt.domain_json.schema.cpu import CPU, CPU_TUNE, IOTHREADS, NUMA_TUNE, VCPU, VCPUS
from kvnode.virt.domain_json.schema.devices import DEVICES
from kvnode.virt.domain_json.schema.features import CLOCK, FEATURES
from kvnode.virt.domain_json.schema.firmware import LAUNCH_SECURITY, OS, SYS_INFO
from kvnode.virt.domain_json.schema.hostdevs import IOMMUFD
from kvnode.virt.domain_json.schema.memory import MAX_MEMORY, MEMORY_BACKING
from kvnode.virt.domain_json.schema.metadata import METADATA
from kvnode.virt.domain_json.schema.objectmeta import OBJECT_META
from kvnode.virt.domain_json.schema.status import DOMAIN_STATUS
from kvnode.virt.domain_json.shape import many, one, optional, struct, text, unless_empty, xml_name

RESOURCE = struct(
    text("Partition", "partition"),
)
ENV = struct(
    text("Name", "@name"),
    text("Value", "@value"),
)
ARG = struct(
    text("Value", "@value"),
)
# Go's tags name these with their prefix, which no element's local name has: they are never found in XML.
COMMANDLINE = struct(
    many("QEMUEnv", "qemu:env", ENV),
    many("QEMUArg", "qemu:arg", ARG),
)
DOMAIN_SPEC = struct(
    xml_name(),
    text("Type", "@type"),
    text("XmlNS", "@xmlns:qemu"),
    text("Name", "name"),
    text("UUID", "uuid"),
    one("Memory", "memory", MEMORY),
    optional("CurrentMemory", "currentMemory", MEMORY),
    optional("MaxMemory", "maxMemory", MAX_MEMORY),
    optional("MemoryBacking", "memoryBacking", MEMORY_BACKING),
    one("OS", "os", OS),
    optional("SysInfo", "sysinfo", SYS_INFO),
    one("Devices", "devices", DEVICES),
    optional("Clock", "clock", CLOCK),
    optional("Resource", "resource", RESOURCE),
    optional("QEMUCmd", "qemu:commandline", COMMANDLINE),
    one("Metadata", "metadata", METADATA),
    optional("Features", "features", FEATURES),
    one("CPU", "cpu", CPU),
    optional("VCPU", "vcpu", VCPU),
    optional("VCPUs", "vcpus", VCPUS),
    optional("CPUTune", "cputune", CPU_TUNE),
    optional("NUMATune", "numatune", NUMA_TUNE),
    optional("IOThreads", "iothreads", IOTHREADS),
    optional("LaunchSecurity", "launchSecurity", LAUNCH_SECURITY),
    text("OnReboot", "on_reboot"),
    optional("IOMMUFD", "iommufd", IOMMUFD),
)
DOMAIN = struct(
    unless_empty(text("kind")),
    unless_empty(text("apiVersion")),
    one("ObjectMeta", "", OBJECT_META),
    one("Spec", "", DOMAIN_SPEC),
    one("Status", "", DOMAIN_STATUS),
)
