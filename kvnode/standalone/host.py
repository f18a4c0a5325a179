"""What this machine has: architecture, programs, firmware, huge pages."""

from __future__ import annotations

import os
import platform
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from kvnode.api.quantity import Quantity
from kvnode.standalone.errors import EXIT_ENVIRONMENT, StandaloneError

_ARCHITECTURES = {"x86_64": "amd64", "aarch64": "arm64", "s390x": "s390x"}
# Code and variables, in order of preference: (file of the code, template of the variables).
_FIRMWARE = Path("/usr/share/OVMF")
_PLAIN_EFI = (("OVMF_CODE_4M.fd", "OVMF_VARS_4M.fd"), ("OVMF_CODE.fd", "OVMF_VARS.fd"))
_SECURE_EFI = (
    ("OVMF_CODE_4M.secboot.fd", "OVMF_VARS_4M.ms.fd"),
    ("OVMF_CODE.secboot.fd", "OVMF_VARS.ms.fd"),
    ("OVMF_CODE.secboot.fd", "OVMF_VARS.secboot.fd"),
)


def architecture() -> str:
    """Return this machine's architecture by Kubernetes' name; raises StandaloneError for one unknown."""
    machine = platform.machine()
    if machine not in _ARCHITECTURES:
        raise StandaloneError(
            f"this machine's architecture, {machine}, is not supported", exit_code=EXIT_ENVIRONMENT
        )
    return _ARCHITECTURES[machine]


def require_root() -> None:
    """Raise StandaloneError unless this process may make namespaces and mounts."""
    if os.geteuid() != 0:
        raise StandaloneError(
            "this needs root: each VM gets mount and PID namespaces of its own; run it with sudo",
            exit_code=EXIT_ENVIRONMENT,
        )


def require_programs(vmi: Mapping[str, Any]) -> str:
    """Return the path of QEMU's emulator; raises StandaloneError naming the package of the first program
    missing.
    """
    emulator = f"qemu-system-{platform.machine()}"
    needed = [(emulator, "qemu-system"), ("qemu-img", "qemu-utils"), ("virtlogd", "libvirt-daemon")]
    if any("cloudInitNoCloud" in volume for volume in vmi["spec"].get("volumes") or []):
        needed.append(("xorrisofs", "xorriso"))
    tpm = vmi["spec"].get("domain", {}).get("devices", {}).get("tpm")
    if tpm is not None and tpm.get("enabled", True):
        needed += [("swtpm", "swtpm"), ("swtpm_setup", "swtpm-tools")]
    for program, package in needed:
        if find_program(program) is None:
            raise StandaloneError(
                f"{program} is not installed (Debian package {package})", exit_code=EXIT_ENVIRONMENT
            )
    if find_program("virtqemud") is None and find_program("libvirtd") is None:
        raise StandaloneError(
            "libvirtd is not installed (Debian package libvirt-daemon)", exit_code=EXIT_ENVIRONMENT
        )
    return str(find_program(emulator))


def find_program(name: str) -> str | None:
    """Return a program's path, also from where daemons are installed."""
    return shutil.which(
        name, path=os.pathsep.join([os.environ.get("PATH", ""), "/usr/sbin", "/usr/bin", "/sbin"])
    )


def efi(vmi: Mapping[str, Any], prefix: str = "") -> dict[str, Any] | None:
    """Return the context's ``efi`` for a VMI that boots by EFI; None for one that does not.

    Secure boot is on unless it is switched off, as in a cluster. Raises StandaloneError when this machine has
    no firmware for it.
    """
    bootloader = (vmi["spec"].get("domain", {}).get("firmware") or {}).get("bootloader") or {}
    if bootloader.get("efi") is None:
        return None
    secure = bootloader["efi"].get("secureBoot") is not False
    for code, variables in _SECURE_EFI if secure else _PLAIN_EFI:
        if (_FIRMWARE / code).exists() and (_FIRMWARE / variables).exists():
            return {"code": str(_FIRMWARE / code), "vars": str(_FIRMWARE / variables), "secureLoader": secure}
    kind = "secure boot" if secure else "EFI"
    raise StandaloneError(
        f"no firmware for {kind} in {_FIRMWARE} (Debian package ovmf)",
        exit_code=EXIT_ENVIRONMENT,
        field=f"{prefix}spec.domain.firmware.bootloader.efi",
    )


def uses_huge_pages(vmi: Mapping[str, Any]) -> bool:
    """Tell whether the guest's memory is to come from huge pages."""
    return bool((vmi["spec"].get("domain", {}).get("memory") or {}).get("hugepages"))


def require_huge_pages(vmi: Mapping[str, Any], guest_bytes: int, prefix: str = "") -> None:
    """Raise StandaloneError when fewer huge pages are free than the guest needs. None are reserved here."""
    if not uses_huge_pages(vmi):
        return
    field = f"{prefix}spec.domain.memory.hugepages.pageSize"
    size = Quantity(vmi["spec"]["domain"]["memory"]["hugepages"].get("pageSize", "2Mi")).value
    directory = Path(f"/sys/kernel/mm/hugepages/hugepages-{size >> 10}kB")
    try:
        free = int((directory / "free_hugepages").read_text(encoding="ascii"))
    except (OSError, ValueError):
        raise StandaloneError(
            f"this machine has no huge pages of {size} bytes", exit_code=EXIT_ENVIRONMENT, field=field
        ) from None
    needed = -(-guest_bytes // size)
    if free < needed:
        raise StandaloneError(
            f"{needed} huge pages of {size >> 10} KiB are needed and {free} are free: "
            f"write more to {directory}/nr_hugepages",
            exit_code=EXIT_ENVIRONMENT,
            field=field,
        )
