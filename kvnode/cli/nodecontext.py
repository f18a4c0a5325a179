"""A stand-in for the node: what the converter is told when the user says nothing of a node.

It is an ordinary one: KVM works, firmware lies where a launcher image has it, container disks are qcow2. What
only a real node knows (CPUs, NUMA cells, device addresses) is left out.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

FREE_PAGE_REPORTING_OFF = "kubevirt.io/free-page-reporting-disabled"
_OVMF = "/usr/share/OVMF"
_AAVMF = "/usr/share/AAVMF"


def stand_in(vmi: Mapping[str, Any], arch: str, config: Mapping[str, Any] | None) -> dict[str, Any]:
    """The context of a defaulted and valid instance.

    The cluster's part follows ``pkg/virt-launcher/virtwrap/manager.go:1240-1373``, the attachment of
    interfaces ``pkg/network/domainspec/interface.go:39``, the firmware's names
    ``pkg/virt-launcher/virtwrap/efi/efi.go:27``.
    """
    from kvnode.spec.config import ClusterConfig  # noqa: PLC0415 - not needed by what is given --raw and --context

    settings = ClusterConfig.of(config)
    spec = vmi.get("spec") or {}
    domain = spec.get("domain") or {}
    devices = domain.get("devices") or {}
    architecture = spec.get("architecture") or arch
    own_log = devices.get("logSerialConsole")
    context: dict[str, Any] = {
        "architecture": architecture,
        "kvmAvailable": True,
        "allowEmulation": settings.use_emulation,
        "smbios": dict(settings.smbios),
        "memBalloonStatsPeriod": settings.mem_balloon_stats_period,
        "serialConsoleLog": not settings.disable_serial_console_log if own_log is None else own_log is True,
        "bochsForEFIGuests": not settings.gate("VGADisplayForEFIGuests"),
        "pciNUMAAwareTopology": settings.gate("PCINUMAAwareTopology"),
        "freePageReporting": not settings.disable_free_page_reporting and _may_report_free_pages(vmi, domain),
        "domainAttachmentByInterface": _attachments(devices, settings.network_bindings),
        "disksInfo": {
            volume["name"]: {"format": "qcow2"}
            for volume in spec.get("volumes") or ()
            if "containerDisk" in volume
        },
    }
    firmware = _firmware(domain, architecture)
    if firmware:
        context["efi"] = firmware
    return context


def _may_report_free_pages(vmi: Mapping[str, Any], domain: Mapping[str, Any]) -> bool:
    """Not without a balloon, not for machines tuned for latency, not where an annotation says so."""
    cpu = domain.get("cpu") or {}
    tuned = cpu.get("dedicatedCpuPlacement") or cpu.get("realtime") is not None
    huge = (domain.get("memory") or {}).get("hugepages") is not None
    annotations = (vmi.get("metadata") or {}).get("annotations") or {}
    no_balloon = (domain.get("devices") or {}).get("autoattachMemBalloon") is False
    return not (no_balloon or tuned or huge or annotations.get(FREE_PAGE_REPORTING_OFF) == "true")


def _attachments(devices: Mapping[str, Any], plugins: Mapping[str, Mapping[str, Any]]) -> dict[str, str]:
    found: dict[str, str] = {}
    for interface in devices.get("interfaces") or ():
        if interface.get("masquerade") is not None or interface.get("bridge") is not None:
            found[interface["name"]] = "tap"
        elif binding := interface.get("binding"):
            kind = plugins.get(binding.get("name"), {}).get("domainAttachmentType")
            if kind:
                found[interface["name"]] = "tap" if kind == "managedTap" else kind
    return found


def _firmware(domain: Mapping[str, Any], architecture: str) -> dict[str, Any] | None:
    efi = ((domain.get("firmware") or {}).get("bootloader") or {}).get("efi")
    if efi is None:
        return None
    if architecture == "arm64":
        return {"code": f"{_AAVMF}/AAVMF_CODE.fd", "vars": f"{_AAVMF}/AAVMF_VARS.fd"}
    if efi.get("secureBoot") is False:
        return {"code": f"{_OVMF}/OVMF_CODE.fd", "vars": f"{_OVMF}/OVMF_VARS.fd"}
    return {
        "code": f"{_OVMF}/OVMF_CODE.secboot.fd",
        "vars": f"{_OVMF}/OVMF_VARS.secboot.fd",
        "secureLoader": True,
    }
