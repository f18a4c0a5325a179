"""The command line of the launcher in the compute container (``template.go:460-516``)."""

from __future__ import annotations

import random

from kvnode.api.names import KEEP_LAUNCHER_AFTER_FAILURE_ANNOTATION, LIBVIRT_LOG_FILTERS_ANNOTATION
from kvnode.spec.pod.source import PodSource

DEFAULT_GRACE_PERIOD = 30
GRACE_PERIOD_PADDING = 15
"""Seconds that the launcher has on top of the guest's grace period, and the pod on top of the launcher's."""

QEMU_TIMEOUT_JITTER = 120
SIMULATE_CRASH_ANNOTATION = "kubevirt.io/func-test-virt-launcher-fail-fast"

_GATED_FLAGS = (
    ("ImageVolume", "--image-volume"),
    ("LibvirtHooksServerAndClient", "--libvirt-hook-server-and-client"),
    ("PodSecondaryInterfaceNamingUpgrade", "--upgrade-ordinal-ifaces"),
    ("VGPULiveMigration", "--vgpu-dedicated-hook"),
    ("VMStatsCollector", "--vm-stats-collector"),
    ("FirmwareAutoSelection", "--firmware-auto-selection"),
)


def grace_period(source: PodSource) -> int:
    """Seconds that the launcher gives the guest to shut down."""
    asked = source.spec.get("terminationGracePeriodSeconds", DEFAULT_GRACE_PERIOD)
    return int(asked) + GRACE_PERIOD_PADDING


def launcher_command(source: PodSource) -> list[str]:
    """The launcher's command, or one that ends at once where the pod is only to bind claims."""
    if source.surroundings.temporary:
        command = ["/bin/bash", "-c", "echo", "bound PVCs"]
    else:
        command = [*_base(source), *_features(source)]
    if source.config.use_emulation:
        command.append("--allow-emulation")
    if source.config.gate("CrossArchitectureVirtualization"):
        command.append("--allow-cross-arch-emulation")
    if _kept_after_failure(source):
        command.append("--keep-after-failure")
    if SIMULATE_CRASH_ANNOTATION in source.annotations:
        command.append("--simulate-crash")
    return command


def _base(source: PodSource) -> list[str]:
    config, settings = source.config, source.settings
    # Spread out, so that many launchers that wait do not give up at the same time.
    timeout = settings.qemu_timeout + random.randrange(QEMU_TIMEOUT_JITTER)  # noqa: S311
    values = {
        "qemu-timeout": f"{timeout}s",
        "name": source.name,
        "uid": source.uid,
        "namespace": source.namespace,
        "kubevirt-share-dir": settings.share_dir,
        "ephemeral-disk-dir": settings.ephemeral_disk_dir,
        "container-disk-dir": settings.container_disk_dir,
        "grace-period-seconds": str(grace_period(source)),
        "hook-sidecars": str(len(source.sidecars)),
        "ovmf-path": config.ovmf_path(source.spec.get("architecture", "")),
        "disk-memory-limit": str(config.disk_verification_memory_limit),
        "hypervisor": "kvm",
    }
    arguments = [part for flag, value in values.items() for part in (f"--{flag}", value)]
    return ["/usr/bin/virt-launcher-monitor", *arguments]


def _features(source: PodSource) -> list[str]:
    flags = ["--run-as-nonroot"] if source.non_root else []
    flags += [flag for gate, flag in _GATED_FLAGS if source.config.gate(gate)]
    filters = source.annotations.get(LIBVIRT_LOG_FILTERS_ANNOTATION)
    return flags if filters is None else [*flags, "--libvirt-log-filters", filters]


def _kept_after_failure(source: PodSource) -> bool:
    """An annotation whose name starts so, and whose value is empty or starts with ``true``."""
    return any(
        name.startswith(KEEP_LAUNCHER_AFTER_FAILURE_ANNOTATION) and (not value or value.startswith("true"))
        for name, value in source.annotations.items()
    )
