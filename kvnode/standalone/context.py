"""The converter's context for this machine: what a node agent would find out and tell."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from kvnode.spec.config import ClusterConfig
from kvnode.standalone import host
from kvnode.standalone.errors import EXIT_ENVIRONMENT, StandaloneError
from kvnode.standalone.manifest import Instance
from kvnode.standalone.model import Acceleration, Progress
from kvnode.virt.kvm_probe import KvmVerdict, cpu_argument, probe_kvm

#: Seconds between statistics of the balloon, the reference's default (``pkg/virt-config/configuration.go``).
BALLOON_PERIOD = 10

_MODES = {"", "host-model", "host-passthrough"}


def judge_kvm(
    instance: Instance, emulator: str, acceleration: Acceleration, cache: Path, progress: Progress
) -> KvmVerdict:
    """Say whether the VM uses KVM, and why; raises StandaloneError where it must and cannot."""
    if acceleration == "emulation":
        return KvmVerdict(False, "emulation was asked for")
    model = str((instance.vmi["spec"].get("domain", {}).get("cpu") or {}).get("model") or "")
    mode = "host" if model in _MODES else "custom"
    progress("probe", "finding out whether KVM works here")
    verdict = probe_kvm(emulator, cpu_argument(mode, model), cache=cache)
    if acceleration == "kvm" and not verdict.works:
        raise StandaloneError(
            f"KVM was asked for and does not work: {verdict.reason}", exit_code=EXIT_ENVIRONMENT
        )
    return verdict


def build_context(
    instance: Instance, architecture: str, verdict: KvmVerdict, disks_info: Mapping[str, Mapping[str, Any]]
) -> dict[str, Any]:
    """Return the context; raises StandaloneError when there is no firmware for the VM."""
    interfaces = instance.vmi["spec"].get("domain", {}).get("devices", {}).get("interfaces") or []
    context: dict[str, Any] = {
        "architecture": architecture,
        "kvmAvailable": verdict.works,
        "allowEmulation": True,
        "smbios": dict(ClusterConfig.of(instance.config).smbios),
        "serialConsoleLog": True,
        "memBalloonStatsPeriod": BALLOON_PERIOD,
        "domainAttachmentByInterface": {interface["name"]: "tap" for interface in interfaces},
        "disksInfo": {name: dict(info) for name, info in disks_info.items()},
    }
    firmware = host.efi(instance.vmi, instance.prefix)
    if firmware is not None:
        context["efi"] = firmware
    return context
