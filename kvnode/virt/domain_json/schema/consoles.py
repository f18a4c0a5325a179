"""Serial ports, consoles, channels, video and graphics."""

from __future__ import annotations

from kvnode.virt.domain_json.scalars import INT32, INT64, TEXT, UINT64
from kvnode.virt.domain_json.schema.common import ALIAS
from kvnode.virt.domain_json.shape import one, optional, struct, text

SERIAL_TARGET = struct(
    optional("Port", "@port", UINT64),
)
SERIAL_SOURCE = struct(
    text("Mode", "@mode"),
    text("Path", "@path"),
)
SERIAL_LOG = struct(
    text("File", "@file"),
    text("Append", "@append"),
)
SERIAL = struct(
    text("Type", "@type"),
    optional("Target", "target", SERIAL_TARGET),
    optional("Source", "source", SERIAL_SOURCE),
    optional("Alias", "alias", ALIAS),
    optional("Log", "log", SERIAL_LOG),
)
CONSOLE_TARGET = struct(
    optional("Type", "@type", TEXT),
    optional("Port", "@port", UINT64),
)
CONSOLE_SOURCE = struct(
    text("Mode", "@mode"),
    text("Path", "@path"),
)
CONSOLE = struct(
    text("Type", "@type"),
    optional("Target", "target", CONSOLE_TARGET),
    optional("Source", "source", CONSOLE_SOURCE),
    optional("Alias", "alias", ALIAS),
)
CHANNEL_SOURCE = struct(
    text("Mode", "@mode"),
    text("Path", "@path"),
)
CHANNEL_TARGET = struct(
    text("Name", "@name"),
    text("Type", "@type"),
    text("Address", "@address"),
    one("Port", "@port", UINT64),
    text("State", "@state"),
)
CHANNEL = struct(
    text("Type", "@type"),
    optional("Source", "source", CHANNEL_SOURCE),
    optional("Target", "target", CHANNEL_TARGET),
)
VIDEO_MODEL = struct(
    text("Type", "@type"),
    optional("Heads", "@heads", UINT64),
    optional("Ram", "@ram", UINT64),
    optional("VRam", "@vram", UINT64),
    optional("VGAMem", "@vgamem", UINT64),
)
VIDEO = struct(
    one("Model", "model", VIDEO_MODEL),
)
GRAPHICS_LISTEN = struct(
    text("Type", "@type"),
    text("Address", "@address"),
    text("Network", "@newtork"),
    text("Socket", "@socket"),
)
GRAPHICS = struct(
    text("AutoPort", "@autoport"),
    text("DefaultMode", "@defaultMode"),
    optional("Listen", "listen", GRAPHICS_LISTEN),
    text("PasswdValidTo", "@passwdValidTo"),
    one("Port", "@port", INT32),
    one("TLSPort", "@tlsPort", INT64),
    text("Type", "@type"),
)
