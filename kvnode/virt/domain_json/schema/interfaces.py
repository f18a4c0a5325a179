"""``<interface>``."""

from __future__ import annotations

from kvnode.virt.domain_json.scalars import UINT64
from kvnode.virt.domain_json.schema.common import ADDRESS, ALIAS, BOOT_ORDER
from kvnode.virt.domain_json.shape import many, one, optional, struct, text, xml_name

INTERFACE_SOURCE = struct(
    text("Network", "@network"),
    text("Device", "@dev"),
    text("Bridge", "@bridge"),
    text("Mode", "@mode"),
    optional("Address", "address", ADDRESS),
)
INTERFACE_TARGET = struct(
    text("Device", "@dev"),
    text("Managed", "@managed"),
)
MODEL = struct(
    text("Type", "@type"),
)
MAC = struct(
    text("MAC", "@address"),
)
MTU = struct(
    text("Size", "@size"),
)
BAND_WIDTH = struct()
LINK_STATE = struct(
    text("State", "@state"),
)
FILTER_REF = struct(
    text("Filter", "@filter"),
)
INTERFACE_DRIVER = struct(
    text("Name", "@name"),
    optional("Queues", "@queues", UINT64),
    text("IOMMU", "@iommu"),
)
ROM = struct(
    text("Enabled", "@enabled"),
)
ACPI = struct(
    one("Index", "@index", UINT64),
)
INTERFACE_BACKEND = struct(
    text("Type", "@type"),
    text("LogFile", "@logFile"),
)
INTERFACE_PORT_FORWARD_RANGE = struct(
    one("Start", "@start", UINT64),
    one("End", "@end", UINT64),
    one("To", "@to", UINT64),
    text("Exclude", "@exclude"),
)
INTERFACE_PORT_FORWARD = struct(
    text("Proto", "@proto"),
    text("Address", "@address"),
    text("Dev", "@dev"),
    many("Ranges", "range", INTERFACE_PORT_FORWARD_RANGE),
)
INTERFACE = struct(
    xml_name(),
    optional("Address", "address", ADDRESS),
    text("Type", "@type"),
    text("TrustGuestRxFilters", "@trustGuestRxFilters"),
    one("Source", "source", INTERFACE_SOURCE),
    optional("Target", "target", INTERFACE_TARGET),
    optional("Model", "model", MODEL),
    optional("MAC", "mac", MAC),
    optional("MTU", "mtu", MTU),
    optional("BandWidth", "bandwidth", BAND_WIDTH),
    optional("BootOrder", "boot", BOOT_ORDER),
    optional("LinkState", "link", LINK_STATE),
    optional("FilterRef", "filterref", FILTER_REF),
    optional("Alias", "alias", ALIAS),
    optional("Driver", "driver", INTERFACE_DRIVER),
    optional("Rom", "rom", ROM),
    optional("ACPI", "acpi", ACPI),
    optional("Backend", "backend", INTERFACE_BACKEND),
    many("PortForward", "portForward", INTERFACE_PORT_FORWARD),
)
