"""``<devices>``, and the devices that are small."""

from __future__ import annotations

from kvnode.virt.domain_json.scalars import TEXT, UINT32
from kvnode.virt.domain_json.schema.common import ADDRESS, ALIAS
from kvnode.virt.domain_json.schema.consoles import CHANNEL, CONSOLE, GRAPHICS, SERIAL, VIDEO
from kvnode.virt.domain_json.schema.disks import DISK
from kvnode.virt.domain_json.schema.hostdevs import CONTROLLER, HOST_DEVICE, IOMMU_DEVICE, REDIRECTED_DEVICE
from kvnode.virt.domain_json.schema.interfaces import INTERFACE
from kvnode.virt.domain_json.schema.memory import MEM_BALLOON, MEMORY_DEVICE
from kvnode.virt.domain_json.shape import many, one, optional, struct, text

PANIC_DEVICE = struct(
    optional("Model", "@model", TEXT),
)
INPUT = struct(
    text("Type", "@type"),
    text("Bus", "@bus"),
    optional("Alias", "alias", ALIAS),
    optional("Address", "address", ADDRESS),
    text("Model", "@model"),
)
WATCHDOG = struct(
    text("Model", "@model"),
    text("Action", "@action"),
    optional("Alias", "alias", ALIAS),
    optional("Address", "address", ADDRESS),
)
RNG_BACKEND = struct(
    text("Model", "@model"),
    text("Source", "."),
)
RNG_DRIVER = struct(
    text("IOMMU", "@iommu"),
)
RNG = struct(
    text("Model", "@model"),
    optional("Backend", "backend", RNG_BACKEND),
    optional("Address", "address", ADDRESS),
    optional("Driver", "driver", RNG_DRIVER),
)
FILESYSTEM_SOURCE = struct(
    text("Dir", "@dir"),
    text("Socket", "@socket"),
)
FILESYSTEM_TARGET = struct(
    text("Dir", "@dir"),
)
FILESYSTEM_DRIVER = struct(
    text("Type", "@type"),
    text("Queue", "@queue"),
)
FILESYSTEM_BINARY_CACHE = struct(
    text("Mode", "@mode"),
)
FILESYSTEM_BINARY_LOCK = struct(
    text("Posix", "@posix"),
    text("Flock", "@flock"),
)
FILESYSTEM_BINARY = struct(
    text("Path", "@path"),
    text("Xattr", "@xattr"),
    optional("Cache", "cache", FILESYSTEM_BINARY_CACHE),
    optional("Lock", "lock", FILESYSTEM_BINARY_LOCK),
)
FILESYSTEM_DEVICE = struct(
    text("Type", "@type"),
    text("AccessMode", "@accessMode"),
    optional("Source", "source", FILESYSTEM_SOURCE),
    optional("Target", "target", FILESYSTEM_TARGET),
    optional("Driver", "driver", FILESYSTEM_DRIVER),
    optional("Binary", "binary", FILESYSTEM_BINARY),
)
SOUND_CARD = struct(
    optional("Alias", "alias", ALIAS),
    text("Model", "@model"),
)
TPM_BACKEND = struct(
    text("Type", "@type"),
    text("Version", "@version"),
    text("PersistentState", "@persistent_state"),
)
TPM = struct(
    text("Model", "@model"),
    one("Backend", "backend", TPM_BACKEND),
)
CID = struct(
    text("Auto", "@auto"),
    one("Address", "@address", UINT32),
)
VSOCK = struct(
    text("Model", "@model"),
    one("CID", "cid", CID),
)
DEVICES = struct(
    text("Emulator", "emulator"),
    many("Interfaces", "interface", INTERFACE),
    many("Channels", "channel", CHANNEL),
    many("HostDevices", "hostdev", HOST_DEVICE),
    many("PanicDevices", "panic", PANIC_DEVICE),
    many("Controllers", "controller", CONTROLLER),
    many("Video", "video", VIDEO),
    many("Graphics", "graphics", GRAPHICS),
    optional("Ballooning", "memballoon", MEM_BALLOON),
    many("Disks", "disk", DISK),
    many("Inputs", "input", INPUT),
    many("Serials", "serial", SERIAL),
    many("Consoles", "console", CONSOLE),
    many("Watchdogs", "watchdog", WATCHDOG),
    optional("Rng", "rng", RNG),
    many("Filesystems", "filesystem", FILESYSTEM_DEVICE),
    many("Redirs", "redirdev", REDIRECTED_DEVICE),
    many("SoundCards", "sound", SOUND_CARD),
    many("TPMs", "tpm", TPM),
    optional("VSOCK", "vsock", VSOCK),
    optional("Memory", "memory", MEMORY_DEVICE),
    many("IOMMU", "iommu", IOMMU_DEVICE),
)
