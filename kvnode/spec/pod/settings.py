"""What a launcher pod depends on beside its VMI and the cluster's configuration."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from kvnode.api.errors import FieldError


@dataclass(frozen=True, slots=True)
class LauncherSettings:
    """How this installation runs launchers: the same for every pod.

    The defaults are those of ``virt-controller``'s flags (``pkg/virt-controller/watch/application.go:1037``).
    """

    launcher_image: str = "kubevirt/virt-launcher"
    """Image of the compute container and of the launcher's own side containers."""

    sidecar_shim_image: str = ""
    """Image of a hook sidecar that names none."""

    image_pull_secret: str = ""
    """Secret that every pod may pull images with; "": none."""

    qemu_timeout: int = 240
    """Seconds that QEMU may take to appear; up to 119 random ones are added."""

    share_dir: str = "/var/run/kubevirt"
    ephemeral_disk_dir: str = "/var/run/kubevirt-ephemeral-disks"
    container_disk_dir: str = "/var/run/kubevirt/container-disks"
    hotplug_disk_dir: str = "/var/run/kubevirt/hotplug-disks/"

    skip_backup_hooks: bool = False
    """Leave out Velero's hooks where the VMI does not say: the KubeVirt object is annotated so."""

    network_annotations: bool = False
    """Write the annotations that Multus and Istio read. Off for the bare rendering, on in a cluster."""

    guest_page_tables: bool = False
    """Count page tables for the guest's memory, too: see `kvnode.memory_overhead`."""


@dataclass(frozen=True, slots=True)
class Claim:
    """What is to be known of a PersistentVolumeClaim."""

    block: bool
    """Whether its volume is a block device, not a file system."""

    shared: bool = False
    """Whether it may be written from several nodes (ReadWriteMany)."""

    uid: str = ""
    """Its UID; pods that reserve the same LUN are kept apart by it."""


@dataclass(frozen=True, slots=True)
class Surroundings:
    """What only the cluster knows about one pod that is to be rendered."""

    backend_storage_claim: str = ""
    """Name of the claim for state that outlives a pod: TPM, NVRAM, changed blocks."""

    image_ids: Mapping[str, str] = field(default_factory=dict)
    """Volume -> image pinned by its digest, for the target of a migration."""

    network_resources: Mapping[str, str] = field(default_factory=dict)
    """Network -> resource of its attachment definition; counts with ExternalNetResourceInjection off."""

    auto_cpu_limit: bool = False
    """Limit CPU: the namespace has a quota of limits.cpu, or is selected to."""

    auto_memory_limit_ratio: float | None = None
    """Limit memory to this many times the request: the namespace has a quota of limits.memory."""

    temporary: bool = False
    """Only bind the claims of a WaitForFirstConsumer storage class, and run no VM."""


class ClaimNotFoundError(FieldError):
    """A volume names a PersistentVolumeClaim that does not exist (yet)."""

    def __init__(self, field: str, claim: str) -> None:
        super().__init__(field, f"there is no PersistentVolumeClaim {claim!r}: create it first")
        self.claim = claim
