"""``<disk>``."""

from __future__ import annotations

from kvnode.virt.domain_json.scalars import INT64, TEXT, UINT32, UINT64
from kvnode.virt.domain_json.schema.common import ADDRESS, ALIAS, BOOT_ORDER
from kvnode.virt.domain_json.shape import many, one, optional, struct, text

DISK_SOURCE_HOST = struct(
    text("Name", "@name"),
    text("Port", "@port"),
)
SOURCE_RESERVATIONS = struct(
    text("Type", "@type"),
    text("Path", "@path"),
    text("Mode", "@mode"),
)
RESERVATIONS = struct(
    text("Managed", "@managed"),
    text("Migration", "@migration"),
    optional("SourceReservations", "source", SOURCE_RESERVATIONS),
)
SLICE_TYPE = struct(
    text("Type", "@type"),
    one("Offset", "@offset", INT64),
    one("Size", "@size", INT64),
)
SLICE = struct(
    one("Slice", "slice", SLICE_TYPE),
)
DATA_STORE_FORMAT = struct(
    text("Type", "@type"),
)
DATA_STORE = struct(
    text("Type", "@type"),
    optional("Format", "format", DATA_STORE_FORMAT),
    # and the source within it, below: a source may have a data store again
)
DISK_SOURCE = struct(
    text("Dev", "@dev"),
    text("File", "@file"),
    text("StartupPolicy", "@startupPolicy"),
    text("Protocol", "@protocol"),
    text("Name", "@name"),
    optional("Host", "host", DISK_SOURCE_HOST),
    optional("Reservations", "reservations", RESERVATIONS),
    many("Slices", "slices", SLICE),
    optional("DataStore", "dataStore", DATA_STORE),
)
DATA_STORE.add(optional("Source", "source", DISK_SOURCE))
DISK_TARGET = struct(
    text("Bus", "@bus"),
    text("Device", "@dev"),
    text("Tray", "@tray"),
)
DISK_IO_THREAD = struct(
    one("Id", "@id", UINT32),
)
DISK_IO_THREADS = struct(
    many("IOThread", "iothread", DISK_IO_THREAD),
)
DISK_DRIVER = struct(
    text("Cache", "@cache"),
    text("ErrorPolicy", "@error_policy"),
    text("IO", "@io"),
    text("Name", "@name"),
    text("Type", "@type"),
    optional("IOThread", "@iothread", UINT64),
    optional("IOThreads", "iothreads", DISK_IO_THREADS),
    optional("Queues", "@queues", UINT64),
    text("Discard", "@discard"),
    text("IOMMU", "@iommu"),
)
READ_ONLY = struct()
DISK_SECRET = struct(
    text("Type", "@type"),
    text("Usage", "@usage"),
    text("UUID", "@uuid"),
)
DISK_AUTH = struct(
    text("Username", "@username"),
    optional("Secret", "secret", DISK_SECRET),
)
BACKING_STORE_FORMAT = struct(
    text("Type", "@type"),
)
BACKING_STORE = struct(
    text("Type", "@type"),
    optional("Format", "format", BACKING_STORE_FORMAT),
    optional("Source", "source", DISK_SOURCE),
)
BLOCK_IO = struct(
    one("LogicalBlockSize", "@logical_block_size", UINT64),
    one("PhysicalBlockSize", "@physical_block_size", UINT64),
    optional("DiscardGranularity", "@discard_granularity", UINT64),
)
SHAREABLE = struct()
DISK = struct(
    text("Device", "@device"),
    text("Snapshot", "@snapshot"),
    text("Type", "@type"),
    one("Source", "source", DISK_SOURCE),
    one("Target", "target", DISK_TARGET),
    text("Serial", "serial"),
    optional("Driver", "driver", DISK_DRIVER),
    optional("ReadOnly", "readonly", READ_ONLY),
    optional("Auth", "auth", DISK_AUTH),
    optional("Alias", "alias", ALIAS),
    optional("BackingStore", "backingStore", BACKING_STORE),
    optional("BootOrder", "boot", BOOT_ORDER),
    optional("Address", "address", ADDRESS),
    text("Model", "@model"),
    optional("BlockIO", "blockio", BLOCK_IO),
    optional("FilesystemOverhead", "filesystemOverhead", TEXT),
    optional("Capacity", "capacity", INT64),
    optional("Shareable", "shareable", SHAREABLE),
)
