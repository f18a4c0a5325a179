"""Memory: its backing, devices and the balloon."""

from __future__ import annotations

from kvnode.virt.domain_json.scalars import UINT64
from kvnode.virt.domain_json.schema.common import ADDRESS, ALIAS, MEMORY
from kvnode.virt.domain_json.shape import many, one, optional, struct, text, xml_name

MAX_MEMORY = struct(
    one("Value", ".", UINT64),
    text("Unit", "@unit"),
    one("Slots", "@slots", UINT64),
)
HUGE_PAGE = struct(
    text("Size", "@size"),
    text("Unit", "@unit"),
    text("NodeSet", "@nodeset"),
)
HUGE_PAGES = struct(
    many("HugePage", "page", HUGE_PAGE),
)
MEMORY_BACKING_SOURCE = struct(
    text("Type", "@type"),
)
MEMORY_BACKING_ACCESS = struct(
    text("Mode", "@mode"),
)
MEMORY_ALLOCATION = struct(
    text("Mode", "@mode"),
)
NO_SHARE_PAGES = struct()
MEMORY_BACKING = struct(
    optional("HugePages", "hugepages", HUGE_PAGES),
    optional("Source", "source", MEMORY_BACKING_SOURCE),
    optional("Access", "access", MEMORY_BACKING_ACCESS),
    optional("Allocation", "allocation", MEMORY_ALLOCATION),
    optional("NoSharePages", "nosharepages", NO_SHARE_PAGES),
)
MEMORY_ADDRESS = struct(
    text("Base", "@base"),
)
MEMORY_TARGET = struct(
    one("Size", "size", MEMORY),
    one("Requested", "requested", MEMORY),
    one("Current", "current", MEMORY),
    text("Node", "node"),
    one("Block", "block", MEMORY),
    optional("Address", "address", MEMORY_ADDRESS),
)
MEMORY_DEVICE = struct(
    xml_name(),
    text("Model", "@model"),
    optional("Target", "target", MEMORY_TARGET),
    optional("Alias", "alias", ALIAS),
    optional("Address", "address", ADDRESS),
)
STATS = struct(
    one("Period", "@period", UINT64),
)
MEM_BALLOON_DRIVER = struct(
    text("IOMMU", "@iommu"),
)
MEM_BALLOON = struct(
    text("Model", "@model"),
    optional("Stats", "stats", STATS),
    optional("Address", "address", ADDRESS),
    optional("Driver", "driver", MEM_BALLOON_DRIVER),
    text("FreePageReporting", "@freePageReporting"),
)
