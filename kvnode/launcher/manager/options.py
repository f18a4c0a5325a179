"""What a manager is told when it starts."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

#: Most memory in bytes that qemu-img may take to look at an image of a user's
#: (``pkg/virt-config/configuration.go``, ``--disk-memory-limit``).
DISK_MEMORY_LIMIT = 2000 << 20


@dataclass(frozen=True)
class ManagerOptions:
    """The VMI that the launcher is for, and what its command line says."""

    namespace: str
    name: str
    uid: str = ""
    """"" takes a VMI of any UID."""

    allow_emulation: bool = False
    kvm: bool | None = None
    """Whether KVM is there; None looks for /dev/kvm."""

    ovmf_path: Path = Path("/usr/share/OVMF")
    firmware_auto_selection: bool = False
    disk_memory_limit: int = DISK_MEMORY_LIMIT
    image_volume: bool = False
    """Container disks are image volumes of the pod, to be linked to where the domain looks for them."""

    allow_cross_arch_emulation: bool = False
    standalone: bool = False
    """There is no pod network: interfaces use QEMU's own."""

    nonroot: bool = False
    vm_stats: bool = False
    """Answers of the guest agent are asked for and kept (``--vm-stats-collector``)."""

    @property
    def domain(self) -> str:
        """Name of the domain."""
        return f"{self.namespace}_{self.name}"

    @property
    def has_kvm(self) -> bool:
        """Whether KVM is there."""
        return Path("/dev/kvm").exists() if self.kvm is None else self.kvm
