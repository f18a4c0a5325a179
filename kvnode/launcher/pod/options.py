"""The command line of ``virt-launcher`` (``cmd/virt-launcher/virt-launcher.go:348``)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from kvnode.launcher import paths
from kvnode.launcher.manager.options import DISK_MEMORY_LIMIT, ManagerOptions
from kvnode.launcher.pod.settings import Intervals, Subject
from kvnode.launcher.programs.flags import Flag, FlagError, Parsed, duration, parse, switch, verbosity, whole

FLAGS = {
    "qemu-timeout": Flag(180.0, duration),
    "kubevirt-share-dir": Flag("/var/run/kubevirt"),
    "ephemeral-disk-dir": Flag(str(paths.EPHEMERAL)),
    "container-disk-dir": Flag(str(paths.CONTAINER_DISKS)),
    "hotplug-disk-dir": Flag(str(paths.HOTPLUG_DISKS)),
    "name": Flag(""),
    "uid": Flag(""),
    "namespace": Flag(""),
    "grace-period-seconds": Flag(30, whole),
    "allow-emulation": switch(),
    "allow-cross-arch-emulation": switch(),
    "run-as-nonroot": switch(),
    "image-volume": switch(),
    "libvirt-hook-server-and-client": switch(),
    "upgrade-ordinal-ifaces": switch(),
    "vgpu-dedicated-hook": switch(),
    "vm-stats-collector": switch(),
    "firmware-auto-selection": switch(),
    "hook-sidecars": Flag(0, whole),
    "disk-memory-limit": Flag(DISK_MEMORY_LIMIT, whole),
    "ovmf-path": Flag("/usr/share/OVMF"),
    "qemu-agent-sys-interval": Flag(120.0, duration),
    "qemu-agent-file-interval": Flag(300.0, duration),
    "qemu-agent-user-interval": Flag(10.0, duration),
    "qemu-agent-version-interval": Flag(300.0, duration),
    "qemu-fsfreeze-status-interval": Flag(5.0, duration),
    "simulate-crash": switch(),
    "libvirt-log-filters": Flag(""),
    "hypervisor": Flag("kvm"),
    # The monitor's, passed on to the launcher with the rest in the reference; nothing here.
    "keep-after-failure": switch(),
    # An addition: nobody drives this launcher, so that SIGTERM presses the power button.
    "standalone": switch(),
}
_INTERVALS = (
    "qemu-agent-sys-interval",
    "qemu-agent-file-interval",
    "qemu-agent-user-interval",
    "qemu-agent-version-interval",
    "qemu-fsfreeze-status-interval",
)


@dataclass(frozen=True)
class PodOptions:
    """What the command line says."""

    subject: Subject
    qemu_timeout: float
    """Seconds to wait for a domain, and for QEMU."""

    grace_seconds: int
    """Seconds from the signal to the end of QEMU."""

    share: Path
    ephemeral: Path
    container_disks: Path
    hotplug_disks: Path
    nonroot: bool
    hook_sidecars: int
    log_filters: str
    verbosity: int
    simulate_crash: bool
    standalone: bool
    intervals: Intervals
    manager: ManagerOptions

    @classmethod
    def read(cls, argv: Sequence[str]) -> PodOptions:
        """Read a command line; raises FlagError."""
        flags = parse(FLAGS, argv)
        for name in ("name", "namespace", "uid"):
            value = flags[name]
            if not value or "/" in value or value in (".", ".."):
                raise FlagError(f"--{name}: must be the VMI's, is {value!r}")
        for name in _INTERVALS:
            if flags[name] <= 0:
                raise FlagError(f"--{name}: must be longer than nothing")
        return cls(
            subject=Subject(flags["namespace"], flags["name"], flags["uid"]),
            qemu_timeout=flags["qemu-timeout"],
            grace_seconds=flags["grace-period-seconds"],
            share=Path(flags["kubevirt-share-dir"]),
            ephemeral=Path(flags["ephemeral-disk-dir"]),
            container_disks=Path(flags["container-disk-dir"]),
            hotplug_disks=Path(flags["hotplug-disk-dir"]),
            nonroot=flags["run-as-nonroot"],
            hook_sidecars=flags["hook-sidecars"],
            log_filters=flags["libvirt-log-filters"],
            verbosity=verbosity(flags),
            simulate_crash=flags["simulate-crash"],
            standalone=flags["standalone"],
            intervals=Intervals(*(flags[name] for name in _INTERVALS)),
            manager=_manager_options(flags),
        )

    @property
    def domain(self) -> str:
        """Name of the domain."""
        return self.subject.domain

    @property
    def sockets(self) -> Path:
        """Directory of the launcher's socket."""
        return self.share / "sockets"

    @property
    def qemu_pid_file(self) -> Path:
        """Where libvirt keeps QEMU's process id (``cmd/virt-launcher/virt-launcher.go:525``)."""
        directory = paths.LIBVIRT_RUN / "qemu" / ("run" if self.nonroot else "")
        return directory / f"{self.domain}.pid"

    @property
    def qemu_log(self) -> Path:
        """QEMU's log (``pkg/virt-launcher/virtwrap/util/libvirt_helper.go:GetQemuLogPath``)."""
        if self.nonroot:
            return paths.PRIVATE / "libvirt/qemu/log" / f"{self.domain}.log"
        return Path("/var/log/libvirt/qemu") / f"{self.domain}.log"


def _manager_options(flags: Parsed) -> ManagerOptions:
    return ManagerOptions(
        namespace=flags["namespace"],
        name=flags["name"],
        uid=flags["uid"],
        allow_emulation=flags["allow-emulation"],
        ovmf_path=Path(flags["ovmf-path"]),
        firmware_auto_selection=flags["firmware-auto-selection"],
        disk_memory_limit=flags["disk-memory-limit"],
        image_volume=flags["image-volume"],
        allow_cross_arch_emulation=flags["allow-cross-arch-emulation"],
        standalone=flags["standalone"],
        nonroot=flags["run-as-nonroot"],
        vm_stats=flags["vm-stats-collector"],
    )
