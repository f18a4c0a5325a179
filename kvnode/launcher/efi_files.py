"""Where a guest's EFI firmware is (``pkg/virt-launcher/virtwrap/efi/efi.go``)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from kvnode.launcher.manager.errors import ManagerError
from kvnode.launcher.manager.instance import Instance
from kvnode.launcher.manager.options import ManagerOptions

# Code and variables, the reference's names first, then those of Debian; None: the firmware keeps none.
_Pair = tuple[str, str | None]
_PLAIN: tuple[_Pair, ...] = (
    # Firmware that could check signatures, without keys: preferred to one that could not.
    ("OVMF_CODE.secboot.fd", "OVMF_VARS.fd"),
    ("OVMF_CODE.fd", "OVMF_VARS.fd"),
    ("OVMF_CODE_4M.fd", "OVMF_VARS_4M.fd"),
)
_SECURE: tuple[_Pair, ...] = (
    ("OVMF_CODE.secboot.fd", "OVMF_VARS.secboot.fd"),
    ("OVMF_CODE_4M.secboot.fd", "OVMF_VARS_4M.ms.fd"),
    ("OVMF_CODE.secboot.fd", "OVMF_VARS.ms.fd"),
)
_ARM: tuple[_Pair, ...] = (("AAVMF_CODE.fd", "AAVMF_VARS.fd"),)
# By launch security and secure boot.
_ENCRYPTED: dict[tuple[str, bool], tuple[_Pair, ...]] = {
    ("sev", False): (("OVMF_CODE.cc.fd", "OVMF_VARS.fd"),),
    ("snp", False): (("OVMF.amdsev.fd", None),),
    ("tdx", False): (("OVMF.inteltdx.fd", None),),
    ("tdx", True): (("OVMF.inteltdx.secboot.fd", None),),
}


def efi(vmi: Instance, options: ManagerOptions, architecture: str) -> dict[str, Any] | None:
    """The context's ``efi`` for a VMI that boots by EFI; None for one that does not.

    Raises:
        ManagerError: the firmware is not there.
    """
    bootloader = ((vmi.domain.get("firmware") or {}).get("bootloader") or {}).get("efi")
    if bootloader is None:
        return None
    secure = bootloader.get("secureBoot") is not False
    kind = launch_security(vmi)
    if secure and not kind and options.firmware_auto_selection:
        return {"secureLoader": True, "firmwareAutoSelection": True}
    for code, variables in _choices(architecture, kind, secure):
        files = [options.ovmf_path / name for name in (code, variables) if name]
        if all(file.exists() for file in files):
            # TDX verifies by itself: libvirt's secure loader would want SMM.
            found: dict[str, Any] = {"code": str(files[0]), "secureLoader": secure and kind != "tdx"}
            if len(files) > 1:
                found["vars"] = str(files[1])
            return found
    # The node agent looks for the first four words.
    raise ManagerError(f"EFI OVMF rom missing in {options.ovmf_path}: {_wanted(kind, secure)}")


def launch_security(vmi: Instance) -> str:
    """``sev``, ``snp`` or ``tdx`` for an encrypted guest; "" for another."""
    security = vmi.domain.get("launchSecurity") or {}
    return next((kind for kind in ("snp", "sev", "tdx") if security.get(kind) is not None), "")


def _choices(architecture: str, kind: str, secure: bool) -> Iterator[_Pair]:
    if kind:
        yield from _ENCRYPTED.get((kind, secure), ())
    elif architecture == "arm64":
        yield from () if secure else _ARM
    else:
        yield from _SECURE if secure else _PLAIN


def _wanted(kind: str, secure: bool) -> str:
    boot = "secure boot" if secure else "EFI without secure boot"
    return f"none for {boot}" + (f" of a guest under {kind.upper()}" if kind else "")
