"""Host devices, controllers, IOMMU and redirected devices."""

from __future__ import annotations

from kvnode.virt.domain_json.scalars import UINT32, UINT64
from kvnode.virt.domain_json.schema.common import ADDRESS, ALIAS, BOOT_ORDER
from kvnode.virt.domain_json.shape import one, optional, struct, text, xml_name

HOST_DEVICE_SOURCE = struct(
    optional("Address", "address", ADDRESS),
)
HOST_DEV_DRIVER = struct(
    text("Iommufd", "@iommufd"),
)
ACPI_HOST_DEV = struct(
    text("NodeSet", "@nodeset"),
)
HOST_DEVICE = struct(
    xml_name(),
    one("Source", "source", HOST_DEVICE_SOURCE),
    text("Type", "@type"),
    optional("BootOrder", "boot", BOOT_ORDER),
    text("Managed", "@managed"),
    text("Mode", "@mode"),
    text("Model", "@model"),
    optional("Address", "address", ADDRESS),
    optional("Alias", "alias", ALIAS),
    text("Display", "@display"),
    text("RamFB", "@ramfb"),
    optional("Driver", "driver", HOST_DEV_DRIVER),
    optional("ACPI", "acpi", ACPI_HOST_DEV),
)
CONTROLLER_DRIVER = struct(
    optional("IOThread", "@iothread", UINT64),
    optional("Queues", "@queues", UINT64),
    text("IOMMU", "@iommu"),
)
PCI_HOLE64 = struct(
    one("Value", ".", UINT64),
    text("Unit", "@unit"),
)
CONTROLLER_TARGET = struct(
    optional("BusNr", "@busNr", UINT32),
    optional("NUMANode", "node", UINT32),
)
CONTROLLER = struct(
    text("Type", "@type"),
    text("Index", "@index"),
    text("Model", "@model"),
    optional("Driver", "driver", CONTROLLER_DRIVER),
    optional("Alias", "alias", ALIAS),
    optional("Address", "address", ADDRESS),
    optional("PCIHole64", "pcihole64", PCI_HOLE64),
    optional("Target", "target", CONTROLLER_TARGET),
)
IOMMU_DRIVER = struct(
    text("PCIBus", "@pciBus"),
    text("Accel", "@accel"),
    text("ATS", "@ats"),
    text("RIL", "@ril"),
    text("SSIDSize", "@ssidSize"),
    text("OAS", "@oas"),
)
IOMMU_DEVICE = struct(
    xml_name(),
    text("Model", "@model"),
    optional("Driver", "driver", IOMMU_DRIVER),
)
IOMMUFD = struct(
    xml_name(),
    text("Enabled", "@enabled"),
    text("FDGroup", "@fdgroup"),
)
REDIRECTED_DEVICE_SOURCE = struct(
    text("Mode", "@mode"),
    text("Path", "@path"),
)
REDIRECTED_DEVICE = struct(
    text("Type", "@type"),
    text("Bus", "@bus"),
    one("Source", "source", REDIRECTED_DEVICE_SOURCE),
)
