"""``<os>``, ``<sysinfo>`` and ``<launchSecurity>``."""

from __future__ import annotations

from kvnode.virt.domain_json.scalars import UINT64
from kvnode.virt.domain_json.shape import many, one, optional, struct, text

FIRMWARE_FEATURE = struct(
    text("Enabled", "@enabled"),
    text("Name", "@name"),
)
FIRMWARE_INFO = struct(
    many("Features", "feature", FIRMWARE_FEATURE),
)
OS_TYPE = struct(
    text("OS", "."),
    text("Arch", "@arch"),
    text("Machine", "@machine"),
)
ACPI_TABLE = struct(
    text("Path", "."),
    text("Type", "@type"),
)
OS_ACPI = struct(
    many("Table", "table", ACPI_TABLE),
)
SMBIOS = struct(
    text("Mode", "@mode"),
)
BOOT = struct(
    text("Dev", "@dev"),
)
BOOT_MENU = struct(
    text("Enable", "@enable"),
    optional("Timeout", "@timeout", UINT64),
)
BIOS = struct(
    text("UseSerial", "@useserial"),
)
LOADER = struct(
    text("ReadOnly", "@readonly"),
    text("Secure", "@secure"),
    text("Type", "@type"),
    text("Path", "."),
)
NVRAM = struct(
    text("Template", "@template"),
    text("Format", "@format"),
    text("NVRam", "."),
)
OS = struct(
    text("Firmware", "@firmware"),
    optional("FirmwareInfo", "firmware", FIRMWARE_INFO),
    one("Type", "type", OS_TYPE),
    optional("ACPI", "acpi", OS_ACPI),
    optional("SMBios", "smbios", SMBIOS),
    many("BootOrder", "boot", BOOT),
    optional("BootMenu", "bootmenu", BOOT_MENU),
    optional("BIOS", "bios", BIOS),
    optional("BootLoader", "loader", LOADER),
    optional("NVRam", "nvram", NVRAM),
    text("Kernel", "kernel"),
    text("Initrd", "initrd"),
    text("KernelArgs", "cmdline"),
)
ENTRY = struct(
    text("Name", "@name"),
    text("Value", "."),
)
SYS_INFO = struct(
    text("Type", "@type"),
    many("System", "system/entry", ENTRY),
    many("BIOS", "bios/entry", ENTRY),
    many("BaseBoard", "baseBoard/entry", ENTRY),
    many("Chassis", "chassis/entry", ENTRY),
)
QGS = struct(
    text("Path", "@path"),
)
LAUNCH_SECURITY = struct(
    text("Type", "@type"),
    text("DHCert", "dhCert"),
    text("Session", "session"),
    text("Cbitpos", "cbitpos"),
    text("ReducedPhysBits", "reducedPhysBits"),
    text("Policy", "policy"),
    optional("QuoteGenerationService", "quoteGenerationService", QGS),
)
