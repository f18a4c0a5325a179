"""What libvirt refuses of KubeVirt's domains, each with its reason: the table of docs/libvirt-compatibility.md.

A row also knows how to take the refused thing out of a domain, so that the rest of that domain is put to libvirt too.
"""

from __future__ import annotations

import re
import xml.etree.ElementTree as ET
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from kvnode.virt.adapt import LIBVIRT_RULES, STANDALONE_RULES, VERSION_RULES

VMI = "the VMI"
LIBVIRT = "the libvirt"
MACHINE = "the machine"


@dataclass(frozen=True)
class Refusal:
    """One kind of refusal."""

    what: str
    cause: str
    """Who would have to change: `VMI`, `LIBVIRT` (another version takes it) or `MACHINE`."""

    reason: str
    says: str
    """What libvirt's message matches when it is asked to define such a domain."""

    cure: Callable[[ET.Element], None]
    """Takes it out of a domain in place; does nothing to a domain without it."""

    schema: bool = False
    """Its schema refuses it as well."""

    until: int | None = None
    """First version of libvirt that takes it; None: none does."""

    since: int = 0
    """First version of libvirt that refuses it."""

    warned: bool = False
    """The VMI alone tells, and `kvnode.warnings` says so."""

    amd64: bool = True
    """Domains of amd64 are refused for it; False: those of arm64 and s390x alone."""

    def holds_for(self, libvirt_version: int) -> bool:
        """Tell whether that version of libvirt refuses it."""
        return self.since <= libvirt_version and (self.until is None or libvirt_version < self.until)


def matching(message: str, libvirt_version: int) -> Refusal | None:
    """The row for a message of libvirt's."""
    rows = (row for row in REFUSALS if row.holds_for(libvirt_version))
    return next((row for row in rows if re.search(row.says, message)), None)


def _dropping(*paths: str) -> Callable[[ET.Element], None]:
    def cure(domain: ET.Element) -> None:
        for path in paths:
            parent_path, _, name = path.rpartition("/")
            for parent in domain.findall(parent_path) if parent_path else [domain]:
                for child in parent.findall(name):
                    parent.remove(child)

    return cure


def _drop_disks(is_refused: Callable[[ET.Element], bool]) -> Callable[[ET.Element], None]:
    def cure(domain: ET.Element) -> None:
        for devices in domain.iterfind("devices"):
            for disk in devices.findall("disk"):
                if is_refused(disk):
                    devices.remove(disk)

    return cure


def _is_lun_of_a_file(disk: ET.Element) -> bool:
    return disk.get("device") == "lun" and disk.get("type") == "file"


def _is_lun_without_scsi(disk: ET.Element) -> bool:
    return disk.get("device") == "lun" and disk.find("target[@bus='sata']") is not None


def _uncached(domain: ET.Element) -> None:
    for driver in domain.iterfind("devices/disk/driver[@io='native']"):
        driver.set("cache", "none")


def _generic_machine(domain: ET.Element) -> None:
    for kind in domain.iterfind("os/type"):
        kind.set(
            "machine",
            re.sub(r"^pc-(q35|i440fx)-rhel.*", r"\1", kind.get("machine", "")).replace("i440fx", "pc"),
        )


def _usb_controller(domain: ET.Element) -> None:
    for controller in domain.iterfind("devices/controller[@type='usb'][@model='none']"):
        controller.set("model", "qemu-xhci")


def _addresses_by_libvirt(domain: ET.Element) -> None:
    for device in domain.iterfind("devices/*"):
        for address in device.findall("address[@type='pci']"):
            device.remove(address)


def _one_cpu(domain: ET.Element) -> None:
    for path in ("vcpus", "cputune", "numatune", "cpu/topology", "cpu/numa", "maxMemory", "iothreads"):
        _dropping(path)(domain)
    for count in domain.iterfind("vcpu"):
        count.text = "1"
        count.attrib.pop("current", None)
    for driver in domain.iterfind("devices/*/driver"):
        driver.attrib.pop("iothread", None)
    for page in domain.iterfind("memoryBacking/hugepages/page"):
        page.attrib.pop("nodeset", None)


def _acpi(domain: ET.Element) -> None:
    for features in domain.iterfind("features"):
        if features.find("acpi") is None:
            ET.SubElement(features, "acpi")


def _user_network(domain: ET.Element) -> None:
    for interface in domain.iterfind("devices/interface[@type='vhostuser']"):
        interface.set("type", "user")
        for name in ("source", "backend", "portForward", "driver"):
            for child in interface.findall(name):
                interface.remove(child)


def _virtio_model(domain: ET.Element) -> None:
    for model in domain.iterfind("devices/interface[@type='vhostuser']/model"):
        model.set("type", "virtio")


def _without_display(domain: ET.Element) -> None:
    for device in domain.iterfind("devices/hostdev"):
        for name in ("display", "ramfb"):
            device.attrib.pop(name, None)


REFUSALS = (
    Refusal(
        "A LUN on a file",
        VMI,
        "`lun` passes SCSI commands through to a block device; KubeVirt admits it on any claim, also one with a file "
        "system, and only the cluster knows which it is.",
        "device='lun' is only valid for block type",
        _drop_disks(_is_lun_of_a_file),
        schema=True,
    ),
    Refusal(
        "A LUN on the SATA bus",
        VMI,
        "Only the SCSI bus carries a LUN. KubeVirt admits SATA for it, and gives SATA on amd64 where no bus is named.",
        "device='lun' is not supported for bus='sata'",
        _drop_disks(_is_lun_without_scsi),
        warned=True,
    ),
    Refusal(
        "`io: native` with a cache",
        VMI,
        "Linux' native I/O needs `cache: none`. KubeVirt admits any pair; where no cache is set, its launcher picks "
        "one on the node.",
        "io='native' needs either no disk cache",
        _uncached,
        warned=True,
    ),
    Refusal(
        "A PCI address that does not exist",
        VMI,
        "KubeVirt checks how `pciAddress` is written, not its range: a root port has slot 00 alone, and no bus more "
        "than 1f.",
        "Invalid PCI address|cannot be plugged into|Attempted double use of PCI",
        _addresses_by_libvirt,
        warned=True,
    ),
    Refusal(
        "More PCI buses than there can be",
        VMI,
        "A `pciAddress` on one of the last buses leaves no number for the bridges that libvirt adds for other devices.",
        "PCI controller index .* too high",
        _addresses_by_libvirt,
    ),
    Refusal(
        "A USB device without a USB controller",
        VMI,
        "KubeVirt adds the controller for a disk or input device on USB and client passthrough: not for a CD-ROM or "
        "LUN on USB, and not for a host device that turns out to be a USB one.",
        "USB is disabled for this domain|Can't add host USB device",
        _usb_controller,
    ),
    Refusal(
        "EFI without ACPI",
        VMI,
        "`features.acpi.enabled: false` together with `firmware.bootloader.efi`: libvirt hands EFI over by ACPI.",
        "UEFI requires ACPI",
        _acpi,
        warned=True,
    ),
    Refusal(
        "BIOS messages on a serial port that cannot be",
        VMI,
        "`bios.useSerial: true` together with `autoattachSerialConsole: false`, or on s390x.",
        "need at least one serial port to use BIOS serial output|BIOS serial console only supported on x86",
        _dropping("os/bios"),
        warned=True,
    ),
    Refusal(
        "More than 255 vCPUs on amd64",
        LIBVIRT,
        "They need an IOMMU with extended interrupt mode, which libvirt adds since 10.10; QEMU 7.2 ends at 288. "
        "`maxSockets` counts.",
        "vCPUs require extended interrupt mode|Maximum CPUs greater than",
        _one_cpu,
        until=10_010_000,
        warned=True,
    ),
    Refusal(
        "More vCPUs than the machine takes",
        VMI,
        "QEMU's machines end at 512 vCPUs on arm64 and at 248 on s390x. `maxSockets` counts.",
        "Maximum CPUs greater than",
        _one_cpu,
        warned=True,
        amd64=False,
    ),
    Refusal(
        "Timers of x86 elsewhere",
        VMI,
        "`clock.timer` takes `hpet`, `kvm`, `pit` and `hyperv` anywhere; arm64 and s390x have none of them.",
        "Configuring the '(kvmclock|hypervclock)' timer is not supported|hpet timer is not supported|pit tickpolicy",
        _dropping("clock/timer"),
        amd64=False,
    ),
    Refusal(
        "Paravirtual spinlocks on arm64",
        VMI,
        "`features.pvspinlock` is for x86.",
        "'pvspinlock' feature is not supported for architecture",
        _dropping("features/pvspinlock"),
        amd64=False,
    ),
    Refusal(
        "A TPM on arm64 and s390x",
        VMI,
        "KubeVirt gives a persistent TPM the CRB interface, which is for x86, and s390x has no emulated TPM at all.",
        "does not support TPM (model|backend)",
        _dropping("devices/tpm"),
        amd64=False,
    ),
    Refusal(
        "Secure boot on s390x",
        VMI,
        "`bootloader.efi` is taken on every architecture; s390x has no EFI.",
        "Secure boot is supported with q35",
        _dropping("os/loader", "os/nvram", "os/firmware"),
        amd64=False,
    ),
    Refusal(
        "USB on s390x",
        VMI,
        "Input devices and client passthrough ask for USB, for which KubeVirt gives s390x no controller.",
        "Can't add USB input device|USB redirection is not supported",
        _dropping("devices/input", "devices/redirdev"),
        amd64=False,
    ),
    Refusal(
        "A vGPU's display without graphics",
        VMI,
        "A vGPU is given a display unless its options say otherwise, also with `autoattachGraphicsDevice: false`, and "
        "libvirt then wants a graphics device to show it on.",
        "graphics device is needed for",
        _without_display,
    ),
    Refusal(
        "passt",
        LIBVIRT,
        "`<interface type='vhostuser'>` with passt behind it came with libvirt 11.1, and Debian 12's 9.0 is built "
        "without passt altogether.",
        "Missing required attribute 'type' in element 'source'",
        _user_network,
        schema=True,
        until=11_001_000,
    ),
    Refusal(
        "passt with an emulated network card",
        VMI,
        "passt talks to a virtio card alone; KubeVirt admits every `model` beside `passtBinding`.",
        "invalid model for interface of type 'vhostuser'",
        _virtio_model,
        since=11_001_000,
        warned=True,
    ),
    Refusal(
        "SEV-SNP",
        LIBVIRT,
        "`<launchSecurity type='sev-snp'>` came with libvirt 10.5.",
        "element 'launchSecurity': 'sev-snp'",
        _dropping("launchSecurity"),
        schema=True,
        until=10_005_000,
    ),
    Refusal(
        "TDX",
        LIBVIRT,
        "`<launchSecurity type='tdx'>` came with libvirt 11.6.",
        "element 'launchSecurity': 'tdx'",
        _dropping("launchSecurity"),
        schema=True,
        until=11_006_000,
    ),
    Refusal(
        "An MSDM table",
        LIBVIRT,
        "`<acpi><table type='msdm'>` is not in libvirt 9.0 and is in 11.3; before it, libvirt knew `slic` alone.",
        "Unknown acpi table type: msdm",
        _dropping("os/acpi"),
        schema=True,
        until=11_003_000,
    ),
    Refusal(
        "SEV and SEV-SNP on a machine without them",
        MACHINE,
        "QEMU offers them on AMD hosts that have them switched on.",
        "(SEV(-SNP)?|'sev(-snp)?') launch security is not supported",
        _dropping("launchSecurity"),
    ),
    Refusal(
        "Machine types of RHEL's QEMU",
        MACHINE,
        "KubeVirt's images hold that QEMU, whose `pc-q35-rhel…` no other one has.",
        "does not support machine type '(pc-(q35|i440fx)|virt|s390-ccw-virtio)-rhel",
        _generic_machine,
    ),
)


def _short(version: int) -> str:
    return f"{version // 1_000_000}.{version // 1000 % 1000}"


def table() -> str:
    """The rows as a table in Markdown, and the rules of adapting as another."""
    return "\n".join([*_lines(), "", "## What adapting changes", "", *_rule_lines()]) + "\n"


def _rule_lines() -> Iterator[str]:
    yield "| Rule | For | Why |"
    yield "|---|---|---|"
    for rule in (*LIBVIRT_RULES, *VERSION_RULES):
        versions = f"libvirt before {_short(rule.until)}" if rule.until else "every libvirt"
        why = re.sub("(<[^>]+>)", r"`\1`", rule.why)
        yield f"| `{rule.name}` | {versions} | {why}. |"
    for rule in STANDALONE_RULES:
        yield f"| `{rule.name}` | standalone mode | {rule.why}. |"


def _lines() -> Iterator[str]:
    yield "| What is refused | By | Who can change it | Warned of | Why |"
    yield "|---|---|---|---|---|"
    for row in REFUSALS:
        by = "define and schema" if row.schema else "define"
        by += f", before {_short(row.until)}" if row.until else ""
        by += f", since {_short(row.since)}" if row.since else ""
        yield f"| {row.what} | {by} | {row.cause} | {'yes' if row.warned else ''} | {row.reason} |"
