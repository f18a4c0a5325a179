"""Rules on firmware: machine type, boot loader, kernel boot, ACPI tables."""

from __future__ import annotations

from kvnode.spec.cause import shown
from kvnode.spec.validation.review import Json, Review, feature_on
from kvnode.spec.validation.syntax import glob_matches, path_fault

_KERNEL_BOOT = "domain.firmware.kernelBoot"


def check_machine_type(review: Review) -> None:
    """The machine type is one that the cluster emulates (vmi-create-admitter.go:997)."""
    machine = (review.domain.get("machine") or {}).get("type", "")
    patterns = review.config.emulated_machines(review.architecture)
    if machine and not any(glob_matches(pattern, machine) for pattern in patterns):
        message = f"is {shown(machine)}: must match one of {', '.join(patterns)}"
        review.invalid("domain.machine.type", message)


def check_acpi_tables(review: Review) -> None:
    """ACPI tables come from secret volumes (vmi-create-admitter.go:1398-1450; path not below firmware)."""
    acpi = _firmware(review).get("acpi")
    if acpi is None:
        return
    references = {name: acpi.get(name, "") for name in ("slicNameRef", "msdmNameRef")}
    if not any(references.values()):
        review.invalid("acpi", "must name a volume in slicNameRef or msdmNameRef of domain.firmware.acpi")
        return
    for name, volume_name in references.items():
        if volume_name:
            _check_acpi_volume(review, f"acpi.{name}", volume_name)


def _check_acpi_volume(review: Review, path: str, volume_name: str) -> None:
    volume = next((v for v in review.volumes if v.get("name") == volume_name), None)
    if volume is None:
        review.invalid(path, f"is {shown(volume_name)}: must name one of spec.volumes")
    elif "secret" not in volume:
        review.invalid(path, f"is {shown(volume_name)}: must name a volume whose source is a secret")


def check_bootloader(review: Review) -> None:
    """One boot loader only, and on arm64 EFI (vmi-create-admitter.go:1384, arm64.go:65)."""
    loader = _bootloader(review)
    if "efi" in loader and "bios" in loader:
        review.invalid("domain.firmware.bootloader", "has both efi and bios: keep one of them")
    if "bios" in loader and review.architecture == "arm64":
        review.not_supported("domain.firmware.bootloader.bios", "is not there on arm64: use efi")


def check_secure_boot(review: Review) -> None:
    """Secure Boot, which is on by default, needs SMM; TDX does without (vmi-create-admitter.go:1478)."""
    efi = _bootloader(review).get("efi")
    if efi is None or efi.get("secureBoot", True) is False:
        return
    tdx = "tdx" in (review.domain.get("launchSecurity") or {})
    if not tdx and not feature_on((review.domain.get("features") or {}).get("smm")):
        review.invalid(
            "domain",
            "boots EFI with Secure Boot, which needs features.smm: add smm: {}, or set secureBoot: false",
        )


def check_kernel_boot(review: Review) -> None:
    """A kernel comes from a container image, by absolute paths (vmi-create-admitter.go:1917)."""
    boot = _firmware(review).get("kernelBoot")
    if boot is None:
        return
    container = boot.get("container")
    if container is None:
        if boot.get("kernelArgs"):
            review.invalid(f"{_KERNEL_BOOT}.kernelArgs", "needs a kernel: set container.kernelPath too")
        return
    path = f"{_KERNEL_BOOT}.container"
    if not container.get("image"):
        review.required(f"{path}.image", "must name the image that holds the kernel or the initrd")
    paths = {name: container[name] for name in ("kernelPath", "initrdPath") if container.get(name)}
    if not paths:
        review.required(path, "must have a kernelPath, an initrdPath or both")
    for name, file in paths.items():
        fault = path_fault(file)
        if fault:
            review.invalid(f"{path}.{name}", f"is {shown(file)}: {fault}")


def _firmware(review: Review) -> Json:
    return review.domain.get("firmware") or {}


def _bootloader(review: Review) -> Json:
    return _firmware(review).get("bootloader") or {}


RULES = (check_machine_type, check_acpi_tables, check_bootloader, check_secure_boot, check_kernel_boot)
